-- The user's own buffers: they follow what the CLI writes.
local context = require('pollux.context')
local say = require('pollux.say')
local text = require('pollux.text')
local M = {}

local api, uv = vim.api, vim.uv or vim.loop

--- The loaded buffer of a file, nil when there is none.
function M.buffer(path)
  local real = uv.fs_realpath(path) or path
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' then
      local name = api.nvim_buf_get_name(buf)
      if name ~= '' and (name == path or (uv.fs_realpath(name) or name) == real) then
        return buf
      end
    end
  end
end

--- The buffer of a file when it has unsaved changes, else nil.
function M.unsaved(path)
  local buf = M.buffer(path)
  return buf and vim.bo[buf].modified and buf or nil
end

--- What changes when a file is written.
function M.stamp(path)
  local s = uv.fs_stat(path)
  return s and ('%d.%d %d %d'):format(s.mtime.sec, s.mtime.nsec, s.size, s.ino) or ''
end

local stamps = {} -- of files when their buffers were read or written

-- Remembers what a buffer's file is while the buffer shows it.
local function mark(buf)
  stamps[buf] = M.stamp(api.nvim_buf_get_name(buf))
end

--- pollux/saveDocument: writes the user's unsaved changes, unless others have written the file since.
function M.save(p, reply)
  local path = p.uri and vim.uri_to_fname(p.uri)
  local buf = path and M.buffer(path)
  if not buf then
    return reply({ saved = false, why = 'it is not open in the editor' })
  elseif not vim.bo[buf].modified then
    return reply({ saved = true })
  elseif vim.bo[buf].readonly then
    return reply({ saved = false, why = 'the editor has it read-only' })
  elseif stamps[buf] ~= M.stamp(path) then
    return reply({ saved = false, why = 'it has changed on disk since the editor read it' })
  end
  local ok, err = pcall(api.nvim_buf_call, buf, function()
    vim.cmd('write')
  end)
  reply({ saved = ok and not vim.bo[buf].modified, why = not ok and tostring(err) or nil })
end

local told = {} -- what the user has been told of a buffer since it was read or written

-- Tells once that a buffer does not show what is on disk.
local function tell(buf, why, message)
  if told[buf] ~= why then
    told[buf] = why
    say.brief(vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ':t'), message, vim.log.levels.WARN)
  end
end

local function tell_unsaved(buf)
  tell(buf, 'unsaved', 'has changed on disk; your unsaved changes are kept, :Pollux merge shows all three')
end

-- The lines of a file as its buffer would have them, nil where only Neovim itself knows how to read it.
local function on_disk(buf, path)
  local o = vim.bo[buf]
  local file = not o.binary and (o.fileencoding == '' or o.fileencoding == 'utf-8') and io.open(path, 'rb')
  local content = file and file:read('*a')
  if file then
    file:close()
  end
  return content and text.valid(content) and not content:find('%z') and text.lines(content) or nil
end

-- Has Neovim read a buffer's file again, whatever 'autoread' is and however long it is: only then it asks nothing at the next :write.
local function read_again(buf, new)
  local undo = vim.o.undoreload
  vim.o.undoreload = -1
  if new then -- checktime would ask
    api.nvim_buf_call(buf, function()
      vim.cmd('silent! edit')
    end)
  else
    local own = vim.fn.getbufvar(buf, '&l:autoread') -- of the user's for this buffer, if it is 0 or 1
    vim.bo[buf].autoread = true
    vim.cmd('silent! checktime ' .. buf)
    if own == 0 then
      vim.bo[buf].autoread = false
    elseif own ~= 1 then
      vim.bo[buf].autoread = nil
    end
  end
  vim.o.undoreload = undo
end

local function shows(buf, lines)
  return vim.deep_equal(api.nvim_buf_get_lines(buf, 0, -1, true), lines)
end

-- Shows what stands in a buffer's file. What is the same keeps its marks, folds, cursors and views; it can be undone at one go.
local function reread(buf, path, new)
  local lines = on_disk(buf, path)
  local windows = lines and vim.fn.win_findbuf(buf) or {}
  local o, views, tick = vim.bo[buf], {}, nil
  if #windows > 0 then
    local modifiable = o.modifiable
    o.modifiable = true
    if text.replace(buf, lines) then
      tick = api.nvim_buf_get_changedtick(buf)
    end
    o.modifiable, o.modified = modifiable, false
    for _, win in ipairs(windows) do
      views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
    end
  end
  read_again(buf, new)
  if lines and not new and not shows(buf, lines) then
    read_again(buf, true) -- by its time the file is the same
  end
  if tick and shows(buf, lines) and api.nvim_buf_get_changedtick(buf) ~= tick and not api.nvim_get_mode().mode:match('^[iR]') then
    api.nvim_buf_call(buf, function()
      vim.cmd('silent! undo') -- the reading has changed nothing any more
    end)
    o.modified = false
  end
  for win, view in pairs(views) do
    api.nvim_win_call(win, function()
      vim.fn.winrestview(view)
    end)
  end
  told[buf] = nil
  api.nvim_buf_call(buf, function()
    vim.b.pollux_read = vim.fn.undotree().seq_cur
    if tick then
      vim.b.pollux_changed = vim.b.pollux_read -- which "u" takes back
    end
  end)
end

-- Says once that "u" has gone behind what others have written, which the next :write would overwrite.
local function undone(event)
  local changed = vim.b[event.buf].pollux_changed
  if changed and vim.fn.changenr() < changed and vim.bo[event.buf].modified then
    vim.b[event.buf].pollux_changed = nil
    local name = vim.fn.fnamemodify(api.nvim_buf_get_name(event.buf), ':t')
    say.brief(name, 'that was the text before the file changed; CTRL-R shows the file again', vim.log.levels.WARN)
  end
end

local guard -- the autocommand that asks nothing while a CLI is connected

-- Buffers of files that were not there when they were opened, and have not been read or written since. Of such Neovim would ask
-- (W13) by itself, whatever the guard says.
local unread = {}

-- Shows in the user's buffer what stands in the file, which may be new, and says what it cannot show.
local function refresh(path, new)
  local buf = M.buffer(path)
  if not buf then
    context.touch(true)
  elseif vim.bo[buf].modified and (not guard or unread[buf] and uv.fs_stat(path)) then
    tell_unsaved(buf)
  elseif vim.bo[buf].modified or not uv.fs_stat(path) then
    vim.cmd('silent! checktime ' .. buf) -- the guard says what there is to say
  else
    reread(buf, path, new)
  end
end

-- What Neovim would ask about a file that has changed.
local function asked(event)
  local reason = vim.v.fcs_reason
  api.nvim_set_vvar('fcs_choice', reason == 'changed' and not vim.bo[event.buf].modified and 'reload' or '')
  if reason == 'conflict' then
    tell_unsaved(event.buf)
  elseif reason == 'deleted' then
    tell(event.buf, 'gone', 'is gone from the disk; its buffer keeps the text')
  end
end

--- While a CLI is connected Neovim asks nothing about files that have changed (W11, W12), as they are followed.
-- An autocommand of the user's for that is left alone.
function M.guard(connected)
  if connected and not guard and vim.fn.exists('#FileChangedShell') ~= 1 then
    guard = api.nvim_create_autocmd('FileChangedShell', { callback = asked })
  elseif not connected and guard then
    api.nvim_del_autocmd(guard)
    guard = nil
  end
end

--- Shows what the CLI writes; `before` is the file's stamp from before it heard of the decision. The watch goes on for
-- ten seconds after each change. What has changed just now may be half-written, and what follows
-- may have the same time, by which Neovim would take it for the same: it is read at the next look.
function M.follow(path, before)
  local seen, left, timer = before, 200, uv.new_timer()
  local function look()
    local current = M.stamp(path)
    if current ~= seen then
      seen, left = current, 200
    elseif current ~= before then
      local new = before == ''
      before = current
      refresh(path, new)
    end
    left = left - 1
    if left <= 0 and not timer:is_closing() then
      timer:close()
    end
  end
  timer:start(0, 50, vim.schedule_wrap(look))
end

local missing = {} -- whether a buffer's file has never been there

--- pollux/filesChanged: others have written these files, or the companion watches them only from now on.
function M.changed(p)
  for _, uri in ipairs(p.uris or {}) do
    local path = vim.uri_to_fname(uri)
    local buf = M.buffer(path)
    if buf then
      local new, there = missing[buf], uv.fs_stat(path) ~= nil
      missing[buf] = missing[buf] ~= false and not there
      refresh(path, new and there)
    end
  end
  context.touch(true)
end

-- The text that a buffer had when it was read or written last.
local function began(buf)
  local view, now = vim.fn.winsaveview(), vim.fn.undotree().seq_cur
  local lines
  pcall(function()
    vim.cmd('silent noautocmd undo ' .. (vim.b[buf].pollux_read or 0))
    lines = api.nvim_buf_get_lines(buf, 0, -1, true)
  end)
  vim.cmd('silent noautocmd undo ' .. now)
  vim.fn.winrestview(view)
  return lines
end

local function beside(name, lines, filetype)
  vim.cmd('leftabove vnew')
  local buf = api.nvim_get_current_buf()
  pcall(api.nvim_buf_set_name, buf, ('pollux://%d/%s'):format(buf, name))
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].modifiable, vim.bo[buf].syntax = 'nofile', 'wipe', false, filetype
  vim.cmd('diffthis')
end

--- Shows this buffer's unsaved changes beside what it began with, and what is on the disk now, in a tab page.
function M.merge()
  local buf = api.nvim_get_current_buf()
  local path = api.nvim_buf_get_name(buf)
  local ok, disk = pcall(vim.fn.readfile, path)
  if vim.bo[buf].buftype ~= '' or path == '' or not ok then
    return say.fail('this buffer is no file on disk')
  end
  local base, name = began(buf), vim.fn.fnamemodify(path, ':t')
  vim.cmd('tab split | diffthis')
  local win = api.nvim_get_current_win()
  if base then
    beside('began/' .. name, base, vim.bo[buf].filetype)
  end
  beside('disk/' .. name, on_disk(buf, path) or disk, vim.bo[buf].filetype)
  api.nvim_set_current_win(win)
  say.say('on the left the disk, in the middle what you began with: :diffget disk takes a change, :w writes, :tabclose ends')
end

function M.start()
  local group = api.nvim_create_augroup('pollux_reload', {})
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost' }, {
    group = group,
    callback = function(event)
      told[event.buf], unread[event.buf] = nil, nil
      mark(event.buf)
      vim.b[event.buf].pollux_read = vim.fn.undotree().seq_cur
      if event.event == 'BufWritePost' then
        vim.b[event.buf].pollux_changed = nil
      end
    end,
  })
  local function note(buf)
    unread[buf] = vim.bo[buf].buftype == '' and not uv.fs_stat(api.nvim_buf_get_name(buf)) or nil
  end
  api.nvim_create_autocmd('BufNewFile', {
    group = group,
    callback = function(event)
      note(event.buf)
    end,
  })
  for _, buf in ipairs(api.nvim_list_bufs()) do
    note(buf)
    if not vim.bo[buf].modified then
      mark(buf)
    end
  end
  api.nvim_create_autocmd('TextChanged', { group = group, callback = undone })
end

--- Keeps what the user made of a proposal that nobody waits for any more, as its CLI or its companion has gone.
function M.keep(d, content)
  local buf = api.nvim_create_buf(true, true)
  pcall(api.nvim_buf_set_name, buf, ('pollux://%s/edited/%s'):format(d.id, vim.fn.fnamemodify(d.path, ':t')))
  api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(content, '\n', { plain = true }))
  say.say(('%s: nobody waits for this proposal any more; what you made of it is kept, :sbuffer %d shows it'):format(d.title, buf), vim.log.levels.WARN)
end

return M
