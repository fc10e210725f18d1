-- Diffs: proposals of the CLI's, one on show in a tab of its own, the others in a queue.
local config = require('pollux.config')
local context = require('pollux.context')
local mirror = require('pollux.mirror')
local pause = require('pollux.pause')
local reload = require('pollux.reload')
local say = require('pollux.say')
local sides = require('pollux.sides')
local tabs = require('pollux.tabs')
local text = require('pollux.text')
local view = require('pollux.view')
local M = {}

local api, uv = vim.api, vim.uv or vim.loop

local queue = {} -- in the order in which they came; see M.open for their fields
local unheard = {} -- rejections that no companion has answered, by id; see M.announce
local client -- set by M.connect
local waiter -- the timer that opens a diff when the user pauses

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

-- Has the diff on show say which of how many it is, and how many others wait for its file.
local function count()
  for i, d in ipairs(queue) do
    local others = -1
    for _, other in ipairs(queue) do
      others = others + (other.path == d.path and 1 or 0)
    end
    local place = #queue > 1 and ('%d of %d waiting'):format(i, #queue) or ''
    if others ~= d.others or place ~= d.place then
      d.others, d.place = others, place
      if visible(d) then
        view.mark(d)
      end
    end
  end
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

-- What changes with each edit of a proposal.
local function tick(d)
  return d.right and api.nvim_buf_is_valid(d.right) and api.nvim_buf_get_changedtick(d.right) or nil
end

-- Reports go to the companion of the moment; one that comes back after a crash learns all by M.announce.
local function notify(method, params)
  if client then
    client.notify(method, params)
  end
end

local function announcement(d, outcome)
  return { diffId = d.id, filePath = d.path, content = M.content(d), shown = d.shown, oldText = d.old, outcome = outcome }
end

--- The diffs as a companion that has come back wants to hear of them, with what the one before has not heard. It counts their versions anew.
function M.announce()
  local all = vim.tbl_values(unheard)
  for _, d in ipairs(queue) do
    all[#all + 1] = announcement(d)
    d.version, d.base, d.edits, d.deciding = 1, 0, 0, nil
    d.told = tick(d)
  end
  return all
end

--- Whether there is anything to announce.
function M.waits()
  return #queue > 0 or next(unheard) ~= nil
end

function M.connect(to)
  client = to
  for _, d in ipairs(not to and queue or {}) do
    d.deciding = nil -- nobody answers that any more
  end
end

--- The text of a proposal as it is now.
function M.content(d)
  local at = tick(d)
  return at and at ~= d.tick and text.read(d.right) or d.new
end

--- Reports what the user has edited and nobody has heard of; nothing else is sent. Returns whether there was any.
function M.report(d)
  local at = find(d.id) and tick(d)
  if not at or at == d.told then
    return false
  end
  local content = M.content(d)
  if text.valid(content) then
    d.edits, d.told = d.edits + 1, at
    notify('pollux/didChangeDiff', { diffId = d.id, version = d.edits, from = d.version, content = content })
  end
  return true
end

-- A throttled report of what the user edits.
local function changed(d)
  if d.reporting then
    return
  end
  d.reporting = true
  vim.defer_fn(function()
    d.reporting = false
    M.report(d)
  end, 200)
end

-- The view goes, if gone says so once it has. That rejects, but not when it goes with a decision: the
-- companion may refuse that one at once, and then the diff is shown again.
local function left(d, gone)
  if d.deciding then
    return
  end
  vim.schedule(function()
    if not gone or gone() then
      M.reject(d)
    end
  end)
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
        if find(d.id) and tick(d) then
          vim.bo[d.right].modified = false
        end
      end)
      changed(d)
    end,
  })
end

-- Makes the buffers of a diff.
local function buffers(d)
  sides.make(d, {
    content = function()
      return M.content(d)
    end,
    write = function()
      if pause.by_hand(d.right) then
        M.accept(d)
      else
        say.say('not accepted, as nobody typed that; use :Pollux accept', vim.log.levels.WARN)
        d.hint = say.last()
      end
    end,
    left = function(gone)
      left(d, gone)
    end,
    again = function(buf)
      sides.again(d, buf)
      if buf == d.right then
        d.tick = tick(d)
        listen(d)
        changed(d)
      end
    end,
    listen = function()
      d.tick = tick(d)
      d.told = d.tick
      listen(d)
    end,
  })
end

--- Shows a diff now, and takes the focus. Returns the reason why not, nil when it is on show.
function M.show(d)
  if visible(d) then
    api.nvim_set_current_win(vim.fn.win_findbuf(d.right)[1])
    return
  end
  d.origin, d.leaving = d.leaving or view.remember(), nil
  if view.leave_terminal() then
    d.leaving = d.origin
    vim.defer_fn(function() -- when Neovim has ended its terminal mode
      local problem = find(d.id) and M.show(d)
      if problem then
        say.fail('a diff cannot be shown: ' .. problem .. ' (try :Pollux review)')
      end
    end, 20)
    return
  end
  if d.origin.mode:match('^[iR]') then
    vim.cmd('stopinsert')
  end
  if not d.right or not api.nvim_buf_is_valid(d.right) then
    buffers(d)
  end
  local function close()
    d.tab = nil -- so that no window's end rejects
    mirror.close(d)
    for _, win in ipairs(vim.list_extend(vim.fn.win_findbuf(d.right), vim.fn.win_findbuf(d.left))) do
      pcall(api.nvim_win_close, win, true)
    end
  end
  close() -- what :edit in the proposal's window has left
  local ok, problem = pcall(view.open, d)
  if not ok then
    close()
    view.restore(d.origin)
    return tostring(problem)
  end
  local keys = ':w accepts, :q rejects' .. (d.place ~= '' and ', ' .. d.place or '')
  if d.fixed then
    keys = keys .. '; ' .. d.fixed
  end
  if reload.unsaved(d.path) then
    say.say(d.title .. ': your unsaved changes of it are kept, and not in this diff; ' .. keys, vim.log.levels.WARN)
  elseif config.get().notify or d.fixed then
    say.brief(d.title, keys)
  end
  d.hint = say.last()
end

-- Takes the view away and puts the user back. Neovim forbids to close a window
-- while it evaluates an expression (a status line, a remote one): then again, soon.
local function hide(d, tries)
  pcall(api.nvim_del_augroup_by_name, 'pollux_diff_' .. d.id)
  local here = d.tab and api.nvim_tabpage_is_valid(d.tab) and api.nvim_get_current_tabpage() == d.tab
  mirror.close(d)
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
    pcall(view.restore, d.origin)
  end
  M.settled()
end

--- Leaves the tab line as it was when no diff is on show.
function M.settled()
  for _, other in ipairs(queue) do
    if visible(other) then
      return
    end
  end
  tabs.done()
end

-- The one place where a diff ends; it is out of the queue before anything is closed.
local function finish(d)
  local _, i = find(d.id)
  if not i then
    return false
  end
  table.remove(queue, i)
  count()
  hide(d)
  say.over(d.hint)
  vim.schedule(function()
    M.pump()
    context.touch(false)
  end)
  return true
end

-- Asks the companion to end a diff, or its conflict, with what is on the screen; then is called if it does.
-- It refuses where something is newer, which it tells (SPEC F-13).
local function decide(d, outcome, content, then_)
  if d.deciding then
    return false
  elseif not client then
    say.fail('the companion does not run just now; the proposal still waits for your decision')
    return false
  end
  d.deciding = outcome
  d.new, d.tick, d.told, d.edits = content, tick(d), tick(d), d.edits + 1 -- it is an edit as well
  local params = { diffId = d.id, version = d.version, baseVersion = d.base, outcome = outcome, content = content, edit = d.edits }
  client.call('pollux/resolveDiff', params, function(_, err)
    d.deciding = nil
    if find(d.id) and err then
      say.say(err.message, vim.log.levels.WARN)
      vim.schedule(function()
        if find(d.id) and not visible(d) then -- its window has gone with the command
          hide(vim.tbl_extend('force', {}, d))
          d.left, d.right, d.tab, d.listening, d.held = nil, nil, nil, nil, nil
          M.pump()
        end
      end)
    elseif find(d.id) then
      then_()
    end
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
  return decide(d, 'accepted', content, function()
    -- Not within the command that is closing the window.
    vim.schedule(function()
      if find(d.id) and M.content(d) ~= content then -- typed since
        reload.keep(d, M.content(d))
      end
      if finish(d) then
        reload.follow(d.path, before)
      end
    end)
  end)
end

--- Ends a conflict: with "keep" the proposal stands over the file's change, with "take" the file's lines stand. It does not accept.
function M.settle(d, how)
  if not d.conflict then
    return say.fail('nothing is in conflict here')
  end
  local content = M.content(d)
  if not text.valid(content) then
    return say.fail('the proposal holds bytes that are not UTF-8')
  end
  decide(d, how, content, function()
    say.brief(vim.fn.fnamemodify(d.path, ':t'), how == 'keep' and 'the proposal stands; :w accepts it' or "the file's lines stand; :w accepts the rest")
    d.hint = say.last()
  end)
end

--- Rejects a diff. One that is being accepted is not: its window may go before the answer comes.
function M.reject(d)
  if find(d.id) and not d.deciding then
    M.report(d) -- the history keeps what the user made of it
    unheard[d.id] = announcement(d, 'rejected')
    if client then
      client.call('pollux/resolveDiff', { diffId = d.id, version = d.version, baseVersion = d.base, outcome = 'rejected' }, function()
        unheard[d.id] = nil
      end)
    end
    finish(d)
  end
end

-- Whether an update was sent before the user's last edit was heard of. It would overwrite that; what is
-- merged with it comes next. An edit that nobody has heard of is reported now.
local function crossed(d, p)
  return M.report(d) or (p.edit or d.edits) < d.edits
end

-- Takes over what somebody else has made of a proposal.
local function take(d, p)
  d.version, d.new, d.shown = p.version, p.content, p.content
  if tick(d) and text.read(d.right) ~= p.content then
    text.update(d.right, p.content)
  end
  d.tick = tick(d)
  d.told = d.tick
  local conflict = d.conflict
  d.conflict = p.conflict
  if tick(d) then
    view.mark(d)
    if visible(d) then
      api.nvim_win_call(vim.fn.win_findbuf(d.right)[1], function()
        vim.cmd('diffupdate')
      end)
      view.where(d)
    end
  end
  if d.conflict and not vim.deep_equal(conflict, d.conflict) then
    say.say(
      ('%s: %s; :Pollux keep keeps the proposal%s'):format(
        vim.fn.fnamemodify(d.path, ':t'),
        d.conflict.reason,
        #d.conflict.places > 0 and ", :Pollux take takes the file's lines" or ''
      ),
      vim.log.levels.WARN
    )
    d.hint = say.last()
    return true
  end
end

--- pollux/didChangeBase: the file has changed, and the proposal with it.
function M.rebase(p)
  local d = find(p.diffId)
  if not d or crossed(d, p) then
    return
  end
  local changed_file = d.old ~= p.oldText
  d.base, d.old = p.baseVersion, p.oldText
  if d.left and api.nvim_buf_is_valid(d.left) then
    text.update(d.left, d.old)
  end
  if not take(d, p) and changed_file then
    say.brief(vim.fn.fnamemodify(d.path, ':t'), 'the file has changed; the proposal is shown on what it holds now')
    d.hint = say.last()
  end
end

--- pollux/didChangeProposal: somebody has edited it in another view.
function M.follow(p)
  local d = find(p.diffId)
  if d and not crossed(d, p) then
    take(d, p)
  end
end

-- Whether the user would not mind another tab now.
local function idle()
  local focus = config.get().focus
  return focus == 'now' and pause.free() or focus ~= 'never' and pause.now()
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
    if d.failed > 20 or not vim.startswith(problem, view.no_tab) then
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
    shown = p.newText or '', -- what the companion has told last
    version = p.version or 0, -- of new, base of old, as the companion counts them
    base = p.baseVersion or 0,
    edits = 0,
    conflict = p.conflict,
    fixed = type(p.readOnly) == 'string' and p.readOnly ~= '' and p.readOnly or nil, -- why it cannot be edited
    others = 0, -- more proposals for its file
  }
  queue[#queue + 1] = d
  count()
  local modified = reload.unsaved(d.path) ~= nil
  reply({ opened = true, bufferModified = modified })
  M.pump()
  if not d.tab and not d.leaving and config.get().notify then
    say.brief(d.title, 'waits, :Pollux review shows it')
    d.hint = say.last()
  end
end

--- pollux/closeDiff
function M.close(p, reply)
  local d, rejected = find(p.diffId), unheard[p.diffId]
  if rejected then
    unheard[p.diffId] = nil
    return reply({ content = rejected.content })
  elseif not d then
    return reply(nil, { code = -32602, message = 'no diff ' .. tostring(p.diffId) })
  end
  local content = M.content(d)
  if not text.valid(content) then
    content = d.new
  end
  local before = reload.stamp(d.path)
  reply({ content = content, version = d.version })
  if content ~= d.proposed and (p.outcome == 'withdrawn' or tick(d) ~= d.told) then -- nobody has heard of the last of it
    reload.keep(d, content)
  end
  if finish(d) and p.outcome ~= 'rejected' then
    reload.follow(d.path, before) -- the CLI may write it
  end
end

--- Ends every diff without a word: its companion has ended in good order, and rejected them.
function M.clear()
  unheard = {}
  for _, d in ipairs(vim.list_extend({}, queue)) do
    finish(d)
  end
end

return M
