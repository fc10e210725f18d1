-- The user's own buffers: they follow what the CLI writes.
local context = require('pollux.context')
local say = require('pollux.say')
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

-- Shows what stands in a buffer's file, whatever 'autoread' is and however long it is.
local function reread(buf)
  local own = vim.fn.getbufvar(buf, '&l:autoread') -- of the user's for this buffer, if it is 0 or 1
  local undo = vim.o.undoreload
  vim.o.undoreload = -1
  vim.bo[buf].autoread = true
  vim.cmd('silent! checktime ' .. buf)
  vim.o.undoreload = undo
  if own == 0 then
    vim.bo[buf].autoread = false
  elseif own ~= 1 then
    vim.bo[buf].autoread = nil
  end
end

-- Shows in the user's buffer what stands in the file, which may be new, and says what it cannot show.
local function refresh(path, new)
  local buf = M.buffer(path)
  if not buf then
    context.touch(true)
  elseif vim.bo[buf].modified then
    say.say(vim.fn.fnamemodify(path, ':t') .. ' has been written; your unsaved changes are kept', vim.log.levels.WARN)
  elseif new then -- checktime would ask
    api.nvim_buf_call(buf, function()
      vim.cmd('silent! edit')
    end)
  else
    reread(buf)
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

-- Whether a file lies in one of the project's folders.
local function within(path)
  local real = uv.fs_realpath(path) or path
  for _, root in ipairs(context.roots()) do
    if root == '/' or vim.startswith(real, root .. '/') then
      return true
    end
  end
  return false
end

local watcher -- the timer of watch
local seen, shown = {}, {} -- of a buffer's file: its last stamp, and that of what the buffer shows

local function look()
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local path = api.nvim_buf_is_loaded(buf) and not vim.bo[buf].modified and context.file(buf)
    if path then
      local now = M.stamp(path)
      local settled = now == seen[buf] -- what has just changed may be half written
      seen[buf], shown[buf] = now, shown[buf] or now
      if settled and now ~= shown[buf] then
        shown[buf] = now
        if within(path) then
          reread(buf)
        end
      end
    end
  end
end

--- From now on shows what the CLI writes without a diff.
function M.watch()
  if not watcher then
    watcher = uv.new_timer()
    watcher:start(0, 1000, vim.schedule_wrap(look))
  end
end

--- Keeps what the user made of a proposal that nobody waits for any more, as its CLI or its companion has gone.
function M.keep(d, content)
  local buf = api.nvim_create_buf(true, true)
  pcall(api.nvim_buf_set_name, buf, ('pollux://%s/edited/%s'):format(d.id, vim.fn.fnamemodify(d.path, ':t')))
  api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(content, '\n', { plain = true }))
  say.say(('%s: nobody waits for this proposal any more; what you made of it is kept, :sbuffer %d shows it'):format(d.title, buf), vim.log.levels.WARN)
end

return M
