-- The tab line while a diff is on show: its tab says "main.go (proposal)". One of the user's own is left alone.
local M = {}

local api = vim.api
local line = "%!v:lua.require'pollux.tabs'.line()"

--- The tab line as Neovim draws it, with the last part of each name alone.
function M.line()
  local shown, here = '', api.nvim_get_current_tabpage()
  for i, tab in ipairs(api.nvim_list_tabpages()) do
    local buf = api.nvim_win_get_buf(api.nvim_tabpage_get_win(tab))
    local name = vim.fn.fnamemodify(vim.fn.bufname(buf), ':t')
    if vim.bo[buf].buftype == 'quickfix' or name == '' then
      name = vim.bo[buf].buftype == 'quickfix' and '[Quickfix List]' or '[No Name]'
    end
    shown = shown .. (tab == here and '%#TabLineSel#' or '%#TabLine#') .. ('%%%dT %s%s '):format(i, vim.bo[buf].modified and '+ ' or '', (name:gsub('%%', '%%%%')))
  end
  return shown .. '%#TabLineFill#%T%=%#TabLine#%999XX'
end

--- Names the tabs while diffs are on show.
function M.name()
  if vim.o.tabline == '' then
    vim.o.tabline = line
  end
end

--- Leaves the tab line as it was, unless a past proposal is on show.
function M.done()
  for _, win in ipairs(api.nvim_list_wins()) do
    if vim.b[api.nvim_win_get_buf(win)].pollux_past then
      return
    end
  end
  if vim.o.tabline == line then
    vim.o.tabline = ''
  end
end

return M
