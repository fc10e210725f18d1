-- The buffers and windows of one diff.
local config = require('pollux.config')
local colours = require('pollux.colours')
local mirror = require('pollux.mirror')
local reload = require('pollux.reload')
local tabs = require('pollux.tabs')
local text = require('pollux.text')
local unified = require('pollux.unified')
local M = {}

local api = vim.api

--- The name of the file's language, without starting anything that a language starts.
function M.syntax_of(path, buf)
  local open = vim.fn.bufnr('^' .. vim.fn.escape(path, '\\*?[]{}^$.~') .. '$')
  if open > 0 and vim.bo[open].filetype ~= '' then
    return vim.bo[open].filetype
  end
  local ignored, found = vim.o.eventignore, ''
  vim.o.eventignore = 'FileType,Syntax'
  pcall(function()
    if vim.fn.has('nvim-0.8') == 1 then
      found = vim.filetype.match({ filename = path, buf = buf }) or ''
    else
      api.nvim_buf_call(buf, function()
        api.nvim_exec_autocmds('BufRead', { group = 'filetypedetect', pattern = path })
      end)
      found = vim.bo[buf].filetype
      vim.bo[buf].filetype = ''
    end
  end)
  vim.o.eventignore = ignored
  return found
end

--- Makes a buffer for one side of a diff.
function M.scratch(d, side, content, kind)
  local buf = api.nvim_create_buf(false, true)
  pcall(api.nvim_buf_set_name, buf, ('pollux://%s/%s (%s)'):format(d.id, vim.fn.fnamemodify(d.path, ':t'), side))
  local o = vim.bo[buf]
  o.bufhidden, o.swapfile = 'hide', false
  text.fill(buf, content)
  o.buftype = kind
  return buf
end

--- What the user had before a diff took the screen.
function M.remember()
  local origin = { tab = api.nvim_get_current_tabpage(), win = api.nvim_get_current_win(), mode = api.nvim_get_mode().mode, sizes = vim.fn.winrestcmd(), views = {} }
  for _, win in ipairs(api.nvim_tabpage_list_wins(origin.tab)) do
    origin.views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  return origin
end

--- Puts it back.
function M.restore(origin)
  if not origin or not api.nvim_tabpage_is_valid(origin.tab) then
    return
  end
  api.nvim_set_current_tabpage(origin.tab)
  if api.nvim_win_is_valid(origin.win) then
    api.nvim_set_current_win(origin.win)
  end
  vim.cmd(origin.sizes) -- from Neovim itself: the tab line came and went
  for win, view in pairs(origin.views) do
    if api.nvim_win_is_valid(win) then
      api.nvim_win_call(win, function()
        vim.fn.winrestview(view)
      end)
    end
  end
  if origin.mode:sub(1, 1) == 't' and vim.bo.buftype == 'terminal' then
    vim.cmd('startinsert')
  end
end

-- Says below a window what it shows, for as long as it does; above it where all windows share one status line.
local function label(win, side, d, more)
  local name = ('%s (%s)'):format(vim.fn.fnamemodify(d.path, ':t'), side):gsub('%%', '%%%%')
  local shown = ('%%#PolluxLabel# %s%%<%s %%='):format(name, more:gsub('%%', '%%%%'))
  if side == 'proposal' then
    shown = shown .. "%{get(b:, 'pollux_change', '')} "
  end
  vim.wo[win].statusline = shown .. ' %l:%c '
  if vim.o.laststatus == 3 and vim.fn.exists('&winbar') == 1 then
    vim.wo[win].winbar = shown
  end
  vim.wo[win].winhighlight = 'DiffAdd:PolluxAdd,DiffChange:PolluxChange,DiffDelete:PolluxDelete,DiffText:PolluxText'
end

-- The lines where changes begin, as the windows of a diff show them; nil for a text that is too long to look.
local function starts(win)
  return api.nvim_win_call(win, function()
    local last, found, inside = vim.fn.line('$'), {}, false
    if last > 5000 then
      return nil
    end
    for line = 1, last + 1 do
      local differs = line <= last and vim.fn.diff_hlID(line, 1) > 0
      if (differs or vim.fn.diff_filler(line) > 0) and not inside then
        found[#found + 1] = math.min(line, last)
      end
      inside = differs
    end
    return found
  end)
end

--- Notes for the status line at which change the cursor is.
function M.where(d)
  local win = d.right and vim.fn.win_findbuf(d.right)[1]
  if not win then
    return
  end
  local ticks = api.nvim_buf_get_changedtick(d.left) .. ' ' .. api.nvim_buf_get_changedtick(d.right)
  if d.ticks ~= ticks then
    d.ticks, d.starts = ticks, d.unified and unified.draw(d) or starts(win) or {}
  end
  local line, at = api.nvim_win_get_cursor(win)[1], 0
  while d.starts[at + 1] and d.starts[at + 1] <= line do
    at = at + 1
  end
  local all = #d.starts
  local said = all == 0 and '' or at > 0 and ('change %d/%d'):format(at, all) or all == 1 and '1 change' or ('%d changes'):format(all)
  if vim.b[d.right].pollux_change ~= said then
    vim.b[d.right].pollux_change = said
  end
end

--- Says beside the text where the file has changed what the proposal changes too, and what ends that.
function M.mark(d)
  vim.fn.sign_define('PolluxConflict', { text = '!', texthl = 'PolluxConflict' })
  vim.fn.sign_unplace('pollux', { buffer = d.right })
  for _, place in ipairs(d.conflict and d.conflict.places or {}) do
    local last = api.nvim_buf_line_count(d.right)
    for line = math.min(place.start + 1, last), math.min(math.max(place['end'], place.start + 1), last) do
      vim.fn.sign_place(0, 'pollux', 'PolluxConflict', d.right, { lnum = line, priority = 50 })
    end
  end
  local more = ''
  if d.conflict then
    more = '  conflict: ' .. (#d.conflict.places > 0 and ':Pollux keep or take' or ':Pollux keep, or reject')
  elseif reload.unsaved(d.path) then
    more = '  without your unsaved changes'
  elseif d.others > 0 then
    more = ('  %d more for this file'):format(d.others)
  end
  if d.place ~= '' and not (d.others > 0 and d.place:find(' of ' .. d.others + 1 .. ' ')) then -- or that says it
    more = more .. '  ' .. d.place
  end
  more = '  ' .. (d.title:match('.* – (.*)') or '') .. more -- first, so that a narrow window shows the rest
  for _, win in ipairs(vim.fn.win_findbuf(d.left)) do
    label(win, 'before', d, '')
  end
  for _, win in ipairs(vim.fn.win_findbuf(d.right)) do
    label(win, 'proposal', d, more)
  end
end

-- Puts the cursor on the first change, which "]c" leaves when it is on the first line or above it.
local function first_change()
  vim.cmd('normal! gg')
  if vim.fn.diff_filler(1) > 0 then
    vim.fn.winrestview({ topline = 1, topfill = vim.fn.diff_filler(1) })
  elseif vim.fn.diff_hlID(1, 1) == 0 then
    vim.cmd('silent! normal! ]c')
  end
end

--- Why a diff that is to come again has not opened.
M.no_tab = 'Neovim opens no tab page now'

--- Leaves a terminal for another window. Each new window, also one that Neovim needs for a moment, begins with the buffer
-- of the one at hand: a terminal would take its size, and its program would draw itself anew. Returns whether it did.
function M.leave_terminal()
  for _, win in ipairs(vim.bo.buftype == 'terminal' and api.nvim_tabpage_list_wins(0) or {}) do
    if vim.bo[api.nvim_win_get_buf(win)].buftype ~= 'terminal' and api.nvim_win_get_config(win).relative == '' then
      vim.cmd(('noautocmd call win_gotoid(%d)'):format(win))
      return true
    end
  end
  return false
end

-- Makes the window that the user was in the one that going back to its tab page leads to: M.leave_terminal has left it.
local function stay(origin, win)
  if origin and api.nvim_win_is_valid(origin.win) and origin.tab ~= api.nvim_get_current_tabpage() and api.nvim_tabpage_get_win(origin.tab) ~= origin.win then
    vim.cmd(('noautocmd call win_gotoid(%d)'):format(origin.win))
    vim.cmd(('noautocmd call win_gotoid(%d)'):format(win))
  end
end

-- Whether the two sides stand one above the other: by the setting, else by 'diffopt', else where two do not fit.
local function stacked(d)
  local layout, diffopt = config.get().layout, vim.opt.diffopt:get()
  if layout == 'vertical' or layout == 'horizontal' then
    return layout == 'horizontal'
  end
  return vim.tbl_contains(diffopt, 'horizontal') or vim.o.columns - mirror.columns(d) < 100 and not vim.tbl_contains(diffopt, 'vertical')
end

-- Has the tab page of a diff show both sides.
local function sides(d)
  vim.cmd('diffthis')
  d.stacked = stacked(d)
  vim.cmd(('rightbelow %s sbuffer %d'):format(d.stacked and '' or 'vertical', d.right))
  d.win = api.nvim_get_current_win()
  vim.cmd('diffthis')
  vim.cmd('wincmd =')
end

--- Lays a diff out anew where the screen has another size: its windows move, and keep what they show.
function M.resize(d)
  local left, right = vim.fn.bufwinid(d.left), vim.fn.bufwinid(d.right)
  if right <= 0 or d.size == vim.o.columns .. ' ' .. vim.o.lines then
    return
  end
  d.size = vim.o.columns .. ' ' .. vim.o.lines
  mirror.resize(d)
  if left > 0 and d.stacked ~= stacked(d) then
    d.stacked = not d.stacked
    vim.fn.win_splitmove(right, left, { vertical = not d.stacked, rightbelow = true })
  end
  vim.cmd('wincmd =')
end

--- Opens the tab page of a diff.
function M.open(d)
  local count = #api.nvim_list_tabpages()
  -- While the tab page of the last one closes, or when an autocommand goes elsewhere,
  -- it splits a window of the user's instead, or finds no room for that (E36).
  d.unified = config.get().layout == 'unified' and unified.fits(d)
  local ok, err = pcall(vim.cmd, 'tab sbuffer ' .. (d.unified and d.right or d.left))
  if #api.nvim_list_tabpages() == count then
    error(M.no_tab .. (ok and '' or ': ' .. tostring(err)), 0)
  end
  d.tab = api.nvim_get_current_tabpage()
  d.win, d.ticks, d.size = api.nvim_get_current_win(), nil, vim.o.columns .. ' ' .. vim.o.lines
  mirror.open(d)
  if not d.unified then
    sides(d)
  end
  stay(d.origin, d.win)
  colours.set()
  tabs.name()
  M.mark(d)
  if d.unified then
    unified.begin(d)
  else
    first_change()
  end
  M.where(d)
end

return M
