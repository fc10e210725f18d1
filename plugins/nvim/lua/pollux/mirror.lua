-- The agent's terminal beside a diff: the layout 'terminal' shows it in the diff's tab page as well, where it was.
local config = require('pollux.config')
local M = {}

local api = vim.api

-- The window of an agent's terminal in a tab page, nil without one.
local function terminal(tab)
  for _, win in ipairs(api.nvim_tabpage_list_wins(tab)) do
    if vim.b[api.nvim_win_get_buf(win)].pollux_cli and api.nvim_win_get_config(win).relative == '' then
      return win
    end
  end
end

local function shown(d)
  return d.mirror and api.nvim_win_is_valid(d.mirror)
end

--- How many columns the terminal takes from the sides of a diff.
function M.columns(d)
  return shown(d) and d.beside and api.nvim_win_get_width(d.mirror) + 1 or 0
end

--- Shows in the tab page at hand the terminal that was on the screen before it.
function M.open(d)
  d.mirror = nil
  local from = config.get().layout == 'terminal' and d.origin and api.nvim_tabpage_is_valid(d.origin.tab) and terminal(d.origin.tab)
  if not from then
    return
  end
  local row, column = unpack(api.nvim_win_get_position(from))
  local width, height = api.nvim_win_get_width(from), api.nvim_win_get_height(from)
  local here = api.nvim_get_current_win()
  d.beside, d.share = width < vim.o.columns, width / vim.o.columns
  local first = d.beside and column == 0 or not d.beside and row <= 1
  local size = d.beside and math.min(width, vim.o.columns - 20) or math.min(height, vim.o.lines - 12)
  vim.cmd(('%s %s %dsplit'):format(first and 'topleft' or 'botright', d.beside and 'vertical' or '', math.max(1, size)))
  d.mirror = api.nvim_get_current_win()
  api.nvim_win_set_buf(d.mirror, api.nvim_win_get_buf(from))
  vim.wo.winfixwidth, vim.wo.winfixheight = d.beside, not d.beside
  api.nvim_set_current_win(here)
end

--- Gives the terminal its share of a screen that has another size.
function M.resize(d)
  if shown(d) and d.beside then
    api.nvim_win_set_width(d.mirror, math.max(1, math.floor(vim.o.columns * d.share)))
  end
end

--- Takes it away with its diff.
function M.close(d)
  if shown(d) then
    pcall(api.nvim_win_close, d.mirror, true)
  end
  d.mirror = nil
end

return M
