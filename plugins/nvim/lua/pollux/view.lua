-- The buffers and windows of one diff.
local reload = require('pollux.reload')
local text = require('pollux.text')
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
  pcall(api.nvim_buf_set_name, buf, ('pollux://%s/%s%s'):format(d.id, side, d.path:gsub('^([^/])', '/%1')))
  local o = vim.bo[buf]
  o.bufhidden, o.swapfile = 'hide', false
  text.fill(buf, content)
  o.buftype = kind
  return buf
end

-- The colours, each a group that a colour scheme or the user may set.
local function colours()
  for group, default in pairs({
    PolluxLabel = 'StatusLine',
    PolluxConflict = 'WarningMsg',
    PolluxAdd = 'DiffAdd',
    PolluxChange = 'DiffChange',
    PolluxDelete = 'DiffDelete',
    PolluxText = 'DiffText',
  }) do
    vim.cmd(('highlight default link %s %s'):format(group, default))
  end
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

-- Says below a window what it shows, for as long as it does.
local function label(win, side, d, more)
  local name = (vim.fn.fnamemodify(d.path, ':t') .. (more or '')):gsub('%%', '%%%%')
  vim.wo[win].statusline = ('%%#PolluxLabel# %s%%<: %s %%=%%l:%%c '):format(side, name)
  vim.wo[win].winhighlight = 'DiffAdd:PolluxAdd,DiffChange:PolluxChange,DiffDelete:PolluxDelete,DiffText:PolluxText'
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
    more = ', conflict: ' .. (#d.conflict.places > 0 and ':Pollux keep or take' or ':Pollux keep, or reject')
  elseif reload.unsaved(d.path) then
    more = ', without your unsaved changes'
  elseif d.others > 0 then
    more = (', %d more for this file'):format(d.others)
  end
  for _, win in ipairs(vim.fn.win_findbuf(d.left)) do
    label(win, 'before', d)
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

--- Opens the tab page of a diff.
function M.open(d)
  local tabs = #api.nvim_list_tabpages()
  -- While the tab page of the last one closes, or when an autocommand goes elsewhere,
  -- it splits a window of the user's instead, or finds no room for that (E36).
  local ok, err = pcall(vim.cmd, 'tab sbuffer ' .. d.left)
  if #api.nvim_list_tabpages() == tabs then
    error(M.no_tab .. (ok and '' or ': ' .. tostring(err)), 0)
  end
  d.tab = api.nvim_get_current_tabpage()
  vim.cmd('diffthis')
  vim.cmd('rightbelow vertical sbuffer ' .. d.right)
  d.win = api.nvim_get_current_win()
  vim.cmd('diffthis')
  vim.cmd('wincmd =')
  colours()
  M.mark(d)
  first_change()
end

return M
