-- The proposals of agents, each in a tab: the file on the left, the proposal on the right.
local micro = import('micro')
local buffer = import('micro/buffer')
local shell = import('micro/shell')
local time = import('time')

local open = {} -- oldest first: {id, path, old, new, before, after, sent, number}, the buffers while it is shown
local following = {} -- by path, what an agent writes now: {since, asks: micro would ask about it, over}
local editing = time.Now() -- when an edit was told last
local waiting = false -- to tell of the next one
local unheard = {} -- rejections that no pollux has answered, by id, as diffs.shown() tells them
local taken -- {path, at}: the proposal on show that pollux took back last; it may bring a newer one

diffs = {}

local function find(id)
  for i, d in ipairs(open) do
    if d.id == id then
      return d, i
    end
  end
end

-- of returns the proposal that a pane shows.
local function of(pane)
  if not pane or not pane.Buf.Type.Scratch then
    return nil
  end
  for _, d in ipairs(open) do
    if d.after and (pane.Buf:GetName() == d.after:GetName() or pane.Buf:GetName() == d.before:GetName()) then
      return d
    end
  end
end

-- text is the proposal as the user has it now, byte for byte.
local function text(d)
  return d.after and link.text_of(d.after) or d.new
end

local function scratch(content, name, path)
  local buf = buffer.NewBuffer(content, '')
  if link.text_of(buf) ~= content then
    return nil -- mixed line ends
  end
  buf.Type.Scratch = true
  buf:SetName(name)
  link.panes(function(pane)
    if pane.Buf.AbsPath == path then
      buf:SetOption('filetype', pane.Buf:FileType())
    end
  end)
  return buf
end

-- show opens a tab for a proposal; false where there is none to open it from.
local function show(d)
  local pane = link.current()
  if not pane then
    return false
  end
  local name = d.path:match('[^/\\]*$')
  local number = d.number > 1 and ' ' .. d.number or ''
  local before, after = scratch(d.old, name .. ' (before)' .. number, d.path), scratch(d.new, name .. ' (proposal)' .. number, d.path)
  before.Type.Readonly, after.Type.Readonly = true, d.read_only ~= nil
  after:SetDiffBase(before:Bytes())
  after:SetOption('diffgutter', 'true')
  d.before, d.after, d.sent = before, after, d.new
  pane:HandleCommand('tab')
  pane = micro.CurPane()
  pane:OpenBuffer(before)
  if pane:GetView().Width >= 100 then
    pane:VSplitIndex(after, true)
  else
    pane:HSplitIndex(after, true)
  end
  link.say((d.read_only or 'edit the proposal') .. '; save accepts, quit rejects (> help pollux)')
  return true
end

-- hide closes a proposal's tab, and goes back to where the user was.
local function hide(d)
  if not d.after then
    return
  end
  d.new = text(d)
  local tabs = micro.Tabs()
  local here, there = tabs:Active(), nil
  link.panes(function(pane, number)
    if of(pane) == d then
      there = number
    end
  end)
  if there then
    local only = #tabs.List == 1
    tabs:SetActive(there)
    local mine = {}
    link.panes(function(pane, number)
      if number == there and of(pane) == d then
        mine[#mine + 1] = pane
      end
    end)
    for i, pane in ipairs(mine) do
      if only and i == #mine and #micro.CurTab().Panes == 1 then
        pane:OpenBuffer(buffer.NewBuffer('', '')) -- the last pane stays: micro would end
      else
        pane:ForceQuit()
      end
    end
    if here ~= there and not only then
      tabs:SetActive(here > there and here - 1 or here)
    end
  end
  d.before, d.after = nil, nil
end

local function forget(d)
  hide(d)
  local _, i = find(d.id)
  table.remove(open, i)
end

-- after calls f a little later. micro has no timer that calls in its own thread.
local function after(f)
  shell.JobSpawn('sleep', { '0.2' }, nil, nil, f)
end

-- reread shows what an agent has just written. micro would ask about a newer file, at whatever happens next: it does not
-- while the file is followed, unless the user has edited it.
function diffs.reread()
  link.panes(function(pane)
    local buf = pane.Buf
    local f = link.is_file(buf) and following[buf.AbsPath]
    if not f then
      return
    end
    local quiet = not f.over and not buf:Modified()
    if quiet and not buf.ReloadDisabled then
      buf.ReloadDisabled, f.asks = true, true
    end
    if quiet and f.asks and buf:ExternallyModified() then
      buf:ReOpen()
    elseif not quiet and f.asks then
      buf.ReloadDisabled = false
    end
  end)
end

-- follow has a file reread for some seconds.
function diffs.follow(path)
  if following[path] then
    following[path].since = time.Now()
    return
  end
  following[path] = { since = time.Now(), asks = false }
  local function look()
    local f = following[path]
    f.over = time.Since(f.since) > 3e9
    diffs.reread()
    if f.over then
      following[path] = nil
    else
      after(look)
    end
  end
  look()
end

-- open answers pollux/openDiff; the user is idle, or the proposal waits.
function diffs.open(p, idle)
  for _, d in ipairs(open) do
    if d.path == p.filePath then
      forget(d)
      break
    end
  end
  local d = {
    id = p.diffId,
    path = p.filePath,
    old = p.oldText,
    new = p.newText,
    shown = p.newText, -- what the agent proposed
    number = 1,
    read_only = p.readOnly and p.readOnly ~= '' and p.readOnly or nil,
  }
  if not scratch(d.old, '', '') or not scratch(d.new, '', '') then
    return nil, { code = -32002, message = 'micro cannot keep the line ends of this text' }
  end
  for _, other in ipairs(open) do
    if other.path:match('[^/\\]*$') == d.path:match('[^/\\]*$') then
      d.number = math.max(d.number, other.number + 1)
    end
  end
  table.insert(open, d)
  local modified = false
  link.panes(function(pane)
    modified = modified or link.is_file(pane.Buf) and pane.Buf.AbsPath == d.path and pane.Buf:Modified()
  end)
  local newer = taken and taken.path == d.path and time.Since(taken.at) < 2e9
  local now = newer or idle and #open == 1 and p.takeFocus ~= false
  if not (now and not micro.InfoBar().HasPrompt and show(d)) then
    link.say('a proposal for ' .. d.path:match('[^/\\]*$') .. ' waits: > pollux review')
  end
  return { opened = true, bufferModified = modified }
end

-- close answers pollux/closeDiff.
function diffs.close(id)
  local d, rejected = find(id), unheard[id]
  if rejected then
    unheard[id] = nil
    return { content = rejected.content }
  end
  if not d then
    return nil
  end
  local content = text(d)
  taken = of(link.current()) == d and { path = d.path, at = time.Now() } or nil
  forget(d)
  diffs.follow(d.path)
  return { content = content }
end

-- report tells of what pollux has not heard yet.
local function report(d)
  local now = text(d)
  if now ~= d.sent and not d.read_only then
    d.sent, editing, d.version = now, time.Now(), (d.version or 0) + 1
    link.notify('pollux/didChangeDiff', { diffId = d.id, version = d.version, content = now })
  end
end

-- report tells of every edit that pollux has not heard of.
function diffs.report()
  for _, d in ipairs(open) do
    report(d)
  end
end

-- edited tells of an edit, at most five times a second.
function diffs.edited(soon)
  local d = of(link.current())
  if not d or d.read_only or waiting and not soon then
    return
  end
  if time.Since(editing) < 2e8 and not soon then
    waiting = true
    after(function()
      waiting = false
      diffs.edited(true)
    end)
    return
  end
  report(d)
end

local function announcement(d, outcome)
  return { diffId = d.id, filePath = d.path, content = text(d), shown = d.shown, oldText = d.old, outcome = outcome }
end

-- decide says what becomes of the proposal at hand.
function diffs.decide(pane, outcome)
  local d = of(pane)
  if not d then
    return link.say('this is no proposal; > pollux review shows the next one')
  end
  if outcome == 'rejected' then
    report(d) -- the history keeps what the user made of it
    unheard[d.id] = announcement(d, outcome)
    forget(d)
    link.notify('pollux/diffResolved', { diffId = d.id, outcome = outcome })
    link.request('workspace/executeCommand', { command = 'pollux.status', arguments = {} }, function() -- answered when that is done
      unheard[d.id] = nil
    end)
  else
    local content = text(d)
    forget(d)
    diffs.follow(d.path)
    link.notify('pollux/diffResolved', { diffId = d.id, outcome = outcome, content = content })
  end
  if #open > 0 then
    link.say(#open .. ' waiting: > pollux review')
  end
end

-- review shows the next proposal that waits, after the one at hand.
function diffs.review()
  local _, at = find((of(link.current()) or {}).id)
  local d = open[(at or 0) % math.max(#open, 1) + 1]
  if not d then
    return link.say('no proposal waits')
  end
  local shown = false
  link.panes(function(pane, number, tab)
    if d.after and pane.Buf:GetName() == d.after:GetName() then
      shown = true
      micro.Tabs():SetActive(number)
      tab:SetActive(tab:GetPane(pane:ID()))
    end
  end)
  if not shown then
    hide(d) -- keeps the text, if > quit has closed its window
    show(d)
  end
end

-- shown are the proposals that a new pollux takes over, and what the one before has not heard.
function diffs.shown()
  local list = {}
  for _, rejected in pairs(unheard) do
    list[#list + 1] = rejected
  end
  for _, d in ipairs(open) do
    list[#list + 1] = announcement(d)
  end
  return #list > 0 and list or nil
end

-- stopped: pollux ends by the user's word, and has rejected what was open.
function diffs.stopped()
  unheard = {}
end

function diffs.count()
  return #open
end

-- Saving a proposal accepts it, leaving it rejects it.
function preSave(pane)
  if not of(pane) then
    return true
  end
  diffs.decide(pane, 'accepted')
  return false
end

preSaveAs = preSave

function preQuit(pane)
  if of(pane) then
    diffs.decide(pane, 'rejected')
    return false
  end
  if #micro.Tabs().List == 1 and #micro.CurTab().Panes == 1 then
    link.leaving()
  end
  return true
end

preForceQuit = preQuit

function preQuitAll()
  link.leaving()
  return true
end
