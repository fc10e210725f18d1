-- Diffs: proposals of the CLI's, one on show in a tab of its own, the others in a queue.
local config = require('pollux.config')
local context = require('pollux.context')
local reload = require('pollux.reload')
local say = require('pollux.say')
local text = require('pollux.text')
local M = {}

local api, uv = vim.api, vim.uv or vim.loop

local queue = {} -- in the order in which they came; see M.open for their fields
local client -- set by M.connect
local key = { at = 0, mode = 'n', tick = 0 } -- the last one typed: when, in which mode, on which text
local waiter -- the timer that opens a diff when the user pauses

local function now()
  return uv.hrtime() / 1e6
end

-- Whether a write is the user's: typed as a command, or by a key that did nothing else. Saving
-- by itself, after a change or a pause, must not accept.
local function by_hand(d)
  local age = now() - key.at
  if key.mode:match('^c') then
    return age < 2000
  end
  return key.mode:match('^n') and age < 200 and key.tick == api.nvim_buf_get_changedtick(d.right)
end

local function find(id)
  for i, d in ipairs(queue) do
    if d.id == id then
      return d, i
    end
  end
end

--- The diffs that wait for a decision, oldest first.
function M.list()
  return queue
end

-- Whether a window of its tab page shows a proposal.
local function visible(d)
  return d.tab and api.nvim_tabpage_is_valid(d.tab) and #vim.fn.win_findbuf(d.right) > 0
end

--- The diff on show, nil when there is none.
function M.current()
  local buf = api.nvim_get_current_buf()
  for _, d in ipairs(queue) do
    if d.right == buf or d.left == buf then
      return d
    end
  end
  for _, d in ipairs(queue) do
    if visible(d) then
      return d
    end
  end
end

--- The diff behind the one on show, nil when no other waits.
function M.following()
  local here = M.current()
  for i, d in ipairs(queue) do
    if d == here then
      return queue[i + 1] or i > 1 and queue[1] or nil
    end
  end
  return queue[1]
end

-- Reports go to the companion of the moment; one that comes back after a crash learns all by M.announce.
local function notify(method, params)
  if client then
    client.notify(method, params)
  end
end

--- The diffs as a companion that has come back wants to hear of them.
function M.announce()
  local all = {}
  for _, d in ipairs(queue) do
    all[#all + 1] = { diffId = d.id, filePath = d.path, content = M.content(d) }
  end
  return all
end

function M.connect(to)
  client = to
end

--- The text of a proposal as it is now.
function M.content(d)
  if d.right and api.nvim_buf_is_valid(d.right) then
    if api.nvim_buf_get_changedtick(d.right) == d.tick then
      return d.new
    end
    return text.read(d.right)
  end
  return d.new
end

-- The name of the file's language, without starting anything that a language starts.
local function syntax_of(path, buf)
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

local function scratch(d, side, content, kind)
  local buf = api.nvim_create_buf(false, true)
  pcall(api.nvim_buf_set_name, buf, ('pollux://%s/%s%s'):format(d.id, side, d.path:gsub('^([^/])', '/%1')))
  local o = vim.bo[buf]
  o.bufhidden, o.swapfile = 'hide', false
  text.fill(buf, content)
  o.buftype = kind
  return buf
end

-- A throttled report of what the user edits.
local function changed(d)
  if d.reporting then
    return
  end
  d.reporting = true
  vim.defer_fn(function()
    d.reporting = false
    if find(d.id) and api.nvim_buf_is_valid(d.right) then
      local content = M.content(d)
      if text.valid(content) then
        notify('pollux/didChangeDiff', { diffId = d.id, version = api.nvim_buf_get_changedtick(d.right), content = content })
      end
    end
  end, 200)
end

-- What the keys of config.mappings() stand for.
local commands = {
  accept = '<Cmd>Pollux accept<CR>',
  reject = '<Cmd>Pollux reject<CR>',
  accept_all = '<Cmd>Pollux accept-all<CR>',
  next = '<Cmd>Pollux review next<CR>',
}

-- The colours, each a group that a colour scheme or the user may set.
local function colours()
  for group, default in pairs({ PolluxLabel = 'StatusLine', PolluxAdd = 'DiffAdd', PolluxChange = 'DiffChange', PolluxDelete = 'DiffDelete', PolluxText = 'DiffText' }) do
    vim.cmd(('highlight default link %s %s'):format(group, default))
  end
end

-- Hears of every edit of a proposal, also after it has been read anew.
local function listen(d)
  if d.listening then
    return
  end
  d.listening = api.nvim_buf_attach(d.right, false, {
    on_detach = function()
      d.listening = false
    end,
    on_lines = function()
      if not find(d.id) then
        return true
      end
      vim.bo[d.right].modified = false -- see ZZ
      vim.schedule(function()
        if find(d.id) and api.nvim_buf_is_valid(d.right) then
          vim.bo[d.right].modified = false
        end
      end)
      changed(d)
    end,
  })
end

-- Writes the proposal as it is now into another file, which decides nothing.
local function copy(d, path)
  path = vim.fn.fnamemodify(path, ':p')
  if uv.fs_stat(path) and vim.v.cmdbang == 0 then
    return say.fail(path .. ' exists (add ! to write it)')
  end
  local ok, err = pcall(vim.fn.writefile, vim.split(M.content(d), '\n', { plain = true }), path, 'b')
  if not ok then
    return say.fail(tostring(err))
  end
  say.say(path .. ' holds a copy; the proposal still waits for your decision')
  vim.schedule(function() -- after :saveas
    if api.nvim_buf_is_valid(d.right) then
      pcall(api.nvim_buf_set_name, d.right, d.name)
    end
  end)
end

-- Shows a side as it was proposed, for :edit!
local function again(d, buf)
  text.fill(buf, buf == d.right and d.new or d.old)
  if buf == d.right then
    d.tick = api.nvim_buf_get_changedtick(buf)
    listen(d)
    changed(d)
  else
    vim.bo[buf].modifiable = false
  end
end

local function buffers(d)
  d.left = scratch(d, 'before', d.old, 'nofile')
  vim.bo[d.left].modifiable = false
  d.right = scratch(d, 'proposal', d.new, 'acwrite')
  d.tick = api.nvim_buf_get_changedtick(d.right)
  local language = syntax_of(d.path, d.right)
  d.tick = api.nvim_buf_get_changedtick(d.right)
  for _, buf in ipairs({ d.left, d.right }) do
    vim.b[buf].pollux_diff = d.id
    if language ~= '' then
      vim.bo[buf].syntax = language
    end
  end
  local group = api.nvim_create_augroup('pollux_diff_' .. d.id, {})
  api.nvim_create_autocmd('BufWriteCmd', {
    group = group,
    buffer = d.right,
    callback = function(event)
      if not vim.startswith(event.match, 'pollux://') then
        copy(d, event.match)
      elseif by_hand(d) then
        M.accept(d)
      else
        say.say('not accepted, as nobody typed that; use :Pollux accept', vim.log.levels.WARN)
      end
    end,
  })
  d.name = api.nvim_buf_get_name(d.right)
  for _, buf in ipairs({ d.left, d.right }) do
    api.nvim_create_autocmd('BufReadCmd', {
      group = group,
      buffer = buf,
      callback = function()
        again(d, buf)
      end,
    })
    api.nvim_create_autocmd('QuitPre', {
      group = group,
      buffer = buf,
      callback = function()
        vim.bo[d.right].modified = false -- :q rejects whatever was edited
        if buf == d.left then
          vim.schedule(function()
            M.reject(d)
          end)
        end
      end,
    })
    api.nvim_create_autocmd('BufWipeout', {
      group = group,
      buffer = buf,
      callback = function()
        vim.schedule(function()
          M.reject(d)
        end)
      end,
    })
    for what, keys in pairs(config.mappings()) do
      if commands[what] and keys then
        api.nvim_buf_set_keymap(buf, 'n', keys, commands[what], { noremap = true, silent = true })
      end
    end
    -- Nothing is ever modified here, so that no autosave writes it; these must write all the same.
    api.nvim_buf_call(buf, function()
      for short, long in pairs({ x = 'wq', xi = 'wq', xit = 'wq', exi = 'wq', exit = 'wq', up = 'w', update = 'w' }) do
        vim.cmd(([[cnoreabbrev <buffer> <expr> %s getcmdtype() ==# ':' && getcmdline() ==# '%s' ? '%s' : '%s']]):format(short, short, long, short))
      end
    end)
  end
  api.nvim_create_autocmd('WinClosed', {
    group = group,
    callback = function(event)
      if d.win and tonumber(event.match) == d.win and d.tab then
        vim.schedule(function()
          if #vim.fn.win_findbuf(d.right) == 0 then
            M.reject(d)
          end
        end)
      end
    end,
  })
  listen(d)
end

-- What the user had before a diff took the screen.
local function remember()
  local origin = { tab = api.nvim_get_current_tabpage(), win = api.nvim_get_current_win(), mode = api.nvim_get_mode().mode, sizes = vim.fn.winrestcmd(), views = {} }
  for _, win in ipairs(api.nvim_tabpage_list_wins(origin.tab)) do
    origin.views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  return origin
end

local function restore(origin)
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
  local name = vim.fn.fnamemodify(d.path, ':t'):gsub('%%', '%%%%')
  vim.wo[win].statusline = ('%%#PolluxLabel# %s%%<: %s%s %%=%%l:%%c '):format(side, name, more or '')
  vim.wo[win].winhighlight = 'DiffAdd:PolluxAdd,DiffChange:PolluxChange,DiffDelete:PolluxDelete,DiffText:PolluxText'
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

local no_tab = 'Neovim opens no tab page now'

-- Opens the tab page of a diff.
local function view(d)
  local tabs = #api.nvim_list_tabpages()
  -- While the tab page of the last one closes, or when an autocommand goes elsewhere,
  -- it splits a window of the user's instead, or finds no room for that (E36).
  local ok, err = pcall(vim.cmd, 'tab sbuffer ' .. d.left)
  if #api.nvim_list_tabpages() == tabs then
    error(no_tab .. (ok and '' or ': ' .. tostring(err)), 0)
  end
  d.tab = api.nvim_get_current_tabpage()
  vim.cmd('diffthis')
  vim.cmd('rightbelow vertical sbuffer ' .. d.right)
  d.win = api.nvim_get_current_win()
  vim.cmd('diffthis')
  vim.cmd('wincmd =')
  colours()
  label(vim.fn.bufwinid(d.left), 'before', d)
  label(d.win, 'proposal', d, reload.unsaved(d.path) and ', without your unsaved changes')
  first_change()
end

--- Shows a diff now, and takes the focus. Returns the reason why not, nil when it is on show.
function M.show(d)
  if visible(d) then
    api.nvim_set_current_win(vim.fn.win_findbuf(d.right)[1])
    return
  end
  d.origin = remember()
  if d.origin.mode:match('^[iR]') then
    vim.cmd('stopinsert')
  end
  if not d.right or not api.nvim_buf_is_valid(d.right) then
    buffers(d)
  end
  local function close()
    d.tab = nil -- so that no window's end rejects
    for _, win in ipairs(vim.list_extend(vim.fn.win_findbuf(d.right), vim.fn.win_findbuf(d.left))) do
      pcall(api.nvim_win_close, win, true)
    end
  end
  close() -- what :edit in the proposal's window has left
  local ok, problem = pcall(view, d)
  if not ok then
    close()
    restore(d.origin)
    return tostring(problem)
  end
  local keys = ':w accepts, :q rejects' .. (#queue > 1 and (', %d more %s'):format(#queue - 1, #queue == 2 and 'waits' or 'wait') or '')
  if reload.unsaved(d.path) then
    say.say(d.title .. ': your unsaved changes of it are kept, and not in this diff; ' .. keys, vim.log.levels.WARN)
  elseif config.get().notify then
    say.brief(d.title, keys)
  end
end

-- Takes the view away and puts the user back. Neovim forbids to close a window
-- while it evaluates an expression (a status line, a remote one): then again, soon.
local function hide(d, tries)
  pcall(api.nvim_del_augroup_by_name, 'pollux_diff_' .. d.id)
  local here = d.tab and api.nvim_tabpage_is_valid(d.tab) and api.nvim_get_current_tabpage() == d.tab
  if d.tab and api.nvim_tabpage_is_valid(d.tab) then
    local closed = true
    for _, win in ipairs(api.nvim_tabpage_list_wins(d.tab)) do
      local buf = api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) -- it may have gone with the one before
      -- Other windows in this tab are the user's own.
      if buf and (buf == d.left or buf == d.right) and (#api.nvim_list_tabpages() > 1 or #api.nvim_tabpage_list_wins(d.tab) > 1) then
        closed = pcall(api.nvim_win_close, win, true) and closed
      end
    end
    if not closed and (tries or 0) < 50 then
      vim.defer_fn(function()
        hide(d, (tries or 0) + 1)
      end, 20)
      return
    end
    here = here and not api.nvim_tabpage_is_valid(d.tab)
  else
    here = d.tab ~= nil -- the user has just closed it
  end
  for _, buf in ipairs({ d.left or -1, d.right or -1 }) do
    if api.nvim_buf_is_valid(buf) then
      pcall(api.nvim_buf_delete, buf, { force = true })
    end
  end
  if here then
    pcall(restore, d.origin)
  end
end

-- The one place where a diff ends; it is out of the queue before anything is closed.
local function finish(d)
  local _, i = find(d.id)
  if not i then
    return false
  end
  table.remove(queue, i)
  hide(d)
  vim.schedule(function()
    M.pump()
    context.touch(false)
  end)
  return true
end

--- Accepts a diff with its text as it is now.
function M.accept(d)
  local content = M.content(d)
  if not text.valid(content) then
    say.fail('the proposal holds bytes that are not UTF-8; it cannot be accepted like this')
    return false
  end
  if content == '' and d.proposed ~= '' then
    say.fail('an emptied proposal cannot be accepted: the CLI would write its own text; reject it instead')
    return false
  end
  if not find(d.id) then
    return false
  end
  local before = reload.stamp(d.path)
  notify('pollux/diffResolved', { diffId = d.id, outcome = 'accepted', content = content })
  -- Not within the command that is closing the window.
  vim.schedule(function()
    if finish(d) then
      reload.follow(d.path, before)
    end
  end)
  return true
end

--- Rejects a diff.
function M.reject(d)
  if find(d.id) then
    notify('pollux/diffResolved', { diffId = d.id, outcome = 'rejected' })
    finish(d)
  end
end

-- Whether nothing on the screen waits for a key of the user's.
local function free(mode)
  return not (mode.blocking or vim.fn.getcmdwintype() ~= '' or mode.mode:match('^c') or mode.mode:match('^r'))
end

--- Whether the user pauses, and records nothing.
function M.paused()
  local mode = api.nvim_get_mode()
  return free(mode) and vim.fn.reg_recording() == '' and now() - key.at >= config.get().idle and mode.mode:match('^[nt]') ~= nil and not mode.mode:match('^no')
end

-- Whether the user would not mind another tab now.
local function idle()
  local focus = config.get().focus
  return focus == 'now' and free(api.nvim_get_mode()) or focus ~= 'never' and M.paused()
end

--- Opens the oldest diff when none is on show and the user pauses.
function M.pump()
  for _, d in ipairs(queue) do
    if visible(d) then
      return
    end
  end
  local d = queue[1]
  if not d or d.held then
    return
  end
  if idle() then
    local problem = M.show(d)
    if not problem then
      return
    end
    d.failed = (d.failed or 0) + 1
    if d.failed > 20 or not vim.startswith(problem, no_tab) then
      d.held = true
      say.fail('a diff cannot be shown: ' .. problem .. ' (try :Pollux review)')
      return
    end
  elseif config.get().focus == 'never' then
    return
  end
  waiter = waiter or uv.new_timer()
  if not waiter:is_active() then
    waiter:start(100, 0, vim.schedule_wrap(M.pump))
  end
end

--- pollux/openDiff
function M.open(p, reply)
  local known = find(p.diffId)
  if known then
    finish(known)
  end
  local d = {
    id = p.diffId,
    path = p.filePath,
    title = p.title ~= '' and p.title or p.filePath,
    old = p.oldText or '',
    new = p.newText or '', -- what its buffer is filled with
    proposed = p.newText or '',
  }
  queue[#queue + 1] = d
  local modified = reload.unsaved(d.path) ~= nil
  reply({ opened = true, bufferModified = modified })
  M.pump()
  if not d.tab and config.get().notify then
    say.brief(d.title, 'waits, :Pollux review shows it')
  end
end

--- pollux/closeDiff
function M.close(p, reply)
  local d = find(p.diffId)
  if not d then
    return reply(nil, { code = -32602, message = 'no diff ' .. tostring(p.diffId) })
  end
  local content = M.content(d)
  if not text.valid(content) then
    content = d.new
  end
  local before = reload.stamp(d.path)
  reply({ content = content })
  if p.outcome == 'withdrawn' and content ~= d.proposed then
    reload.keep(d, content)
  end
  if finish(d) and p.outcome ~= 'rejected' then
    reload.follow(d.path, before) -- the CLI may write it
  end
end

--- Ends every diff without a word: its companion has ended in good order, and rejected them.
function M.clear()
  for _, d in ipairs(vim.list_extend({}, queue)) do
    finish(d)
  end
end

function M.start()
  M.space = M.space or api.nvim_create_namespace('pollux_keys')
  vim.on_key(function()
    key.at, key.mode, key.tick = now(), api.nvim_get_mode().mode, api.nvim_buf_get_changedtick(0)
  end, M.space)
end

return M
