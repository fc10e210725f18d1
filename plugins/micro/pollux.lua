-- pollux for micro: an agent knows what is open here, and its changes come as diffs.
-- Type > help pollux. The messages are in pollux's docs/spec/editor-protocol.md.
VERSION = '0.1.0'

local micro = import('micro')
local config = import('micro/config')
local buffer = import('micro/buffer')
local shell = import('micro/shell')
local util = import('micro/util')
local time = import('time')
local goos = import('os')

local job, part, ready -- the companion, the beginning of a line of its, and whether it has answered
local ended, failures, stopped = nil, 0, false -- when it ended, how often in turn, and that the user wants none
local calls, count = {}, 0 -- what to do with an answer, by the request's id
local last -- the context that was sent last
local state = {} -- what pollux said of itself
local question -- pollux/ask that waits for the user
local touched = time.Now() -- when the user did something last

local function say(text)
  micro.InfoBar():Message('pollux: ' .. text)
end

---- Messages: one JSON value a line, both ways. ----

local function send(message)
  if job then
    message.jsonrpc = '2.0'
    shell.JobSend(job, json.encode(message) .. '\n')
  end
end

local function notify(method, params)
  send({ method = method, params = params })
end

local function request(method, params, answered)
  count = count + 1
  calls[count] = answered or function() end
  send({ id = count, method = method, params = params })
end

-- execute has pollux do something, and says what is so then.
local function execute(command, argument, done)
  request('workspace/executeCommand', { command = command, arguments = { argument } }, function(_, err)
    if err then
      micro.InfoBar():Error('pollux: ' .. tostring(err.message))
    else
      say(done)
    end
  end)
end

---- What the user looks at. ----

local function uri(path)
  local plain = path:gsub('\\', '/'):gsub('[^%w/%-%._~]', function(c)
    return string.format('%%%02X', c:byte())
  end)
  return 'file://' .. (plain:sub(1, 1) == '/' and '' or '/') .. plain
end

-- panes calls f with every pane that shows a text, its tab's number from 0, and the tab.
local function panes(f)
  local tabs = micro.Tabs().List
  for i = 1, #tabs do
    local list = tabs[i].Panes
    for j = 1, #list do
      local pane = list[j]
      if pcall(function()
        return pane.Buf.Type.Kind
      end) then
        f(pane, i - 1, tabs[i])
      end
    end
  end
end

-- current is the pane with the cursor; nil in a terminal.
local function current()
  local pane = micro.CurPane()
  local ok, buf = pcall(function()
    return pane.Buf
  end)
  return ok and buf and pane or nil
end

local function is_file(buf)
  return buf.Type.Kind == buffer.BTDefault and not buf.Type.Scratch and buf.Path ~= ''
end

local function text_of(buf)
  return util.String(buf:Bytes())
end

-- position is a place of a text as LSP counts: lines from 0, and UTF-16 units.
local function position(buf, at)
  local units, line = 0, util.String(buf:Substr(buffer.Loc(0, at.Y), buffer.Loc(at.X, at.Y)))
  for i = 1, #line, 1000 do -- micro's Lua cannot take 5000 values at once
    for _, byte in ipairs({ line:byte(i, i + 999) }) do
      units = units + (byte >= 0xF0 and 2 or (byte < 0x80 or byte >= 0xC0) and 1 or 0)
    end
  end
  return { line = at.Y, character = units }
end

-- place is the reverse of position: where a place of LSP's is in a text.
local function place(buf, at)
  local line = math.min(at.line, buf:LinesNum() - 1)
  local first, final = 0, util.CharacterCountInString(buf:Line(line))
  while first < final do
    local middle = math.floor((first + final) / 2)
    if position(buf, buffer.Loc(middle, line)).character < at.character then
      first = middle + 1
    else
      final = middle
    end
  end
  return buffer.Loc(first, line)
end

local function selection(buf, cursor)
  if not cursor:HasSelection() then
    return nil
  end
  local from, to = cursor.CurSelection[1], cursor.CurSelection[2]
  if to.Y < from.Y or to.Y == from.Y and to.X < from.X then
    from, to = to, from
  end
  return { start = position(buf, from), ['end'] = position(buf, to), text = util.String(cursor:GetSelection()) }
end

local telling = time.Now() -- when a context was sent last
local late = false -- one will be sent in a moment

local function context(again)
  late = late and not again
  if not ready then
    return -- it has ended meanwhile
  elseif late or time.Since(telling) < 5e7 then -- one in 50 ms
    if not late then
      late = true
      shell.JobSpawn('sleep', { '0.05' }, nil, nil, function()
        context(true)
      end)
    end
    return
  end
  local params = { textDocument = json.null, openDocuments = {} }
  panes(function(pane)
    if is_file(pane.Buf) then
      table.insert(params.openDocuments, uri(pane.Buf.AbsPath))
    end
  end)
  local pane = current()
  if pane and is_file(pane.Buf) then
    params.textDocument = { uri = uri(pane.Buf.AbsPath) }
    params.position = position(pane.Buf, pane.Cursor.Loc)
    params.selection = selection(pane.Buf, pane.Cursor)
  end
  local text = json.encode(params)
  if text ~= last then
    last, telling = text, time.Now()
    notify('pollux/didChangeContext', params)
  end
end

---- Starting pollux, again after it has ended. ----

local start

-- moved is called after whatever the user does.
local function moved()
  touched = time.Now()
  if not job and not stopped and time.Since(ended) / 1e9 >= math.min(2 ^ failures, 60) then
    start()
  end
  if ready then
    context()
    diffs.edited()
    findings.tell()
  end
  return true
end

local set_env -- variables by which an agent in this editor's terminals finds pollux

function set_env(change)
  for name, value in pairs(change.set or {}) do
    goos.Setenv(name, value)
  end
  for _, name in ipairs(change.unset or {}) do
    goos.Setenv(name, '')
  end
end

local requests = {
  ['pollux/openDiff'] = function(p)
    return diffs.open(p, time.Since(touched) / 1e9 > 1)
  end,
  ['pollux/closeDiff'] = function(p)
    return diffs.close(p.diffId)
  end,
  ['pollux/openDocument'] = function(p)
    local path = p.uri:gsub('^file://', ''):gsub('%%(%x%x)', function(hex)
      return string.char(tonumber(hex, 16))
    end)
    local pane, buf = current(), buffer.NewBufferFromFile(path)
    if not pane or not buf then
      return nil
    end
    pane:HandleCommand('tab')
    pane = micro.CurPane()
    pane:OpenBuffer(buf)
    if p.selection then
      pane.Cursor:GotoLoc(place(buf, p.selection.start))
      pane:Relocate()
    end
    return { opened = true }
  end,
}

local notifications = {
  ['pollux/didChangeEnv'] = set_env,
  ['pollux/didChangeStatus'] = function(p)
    state = p
  end,
  ['window/showMessage'] = function(p)
    say(p.message)
  end,
}

local function receive(m)
  if m.method == 'pollux/ask' then -- answered by > pollux answer
    question = m
    say(m.params.title .. ' (> pollux answer)')
  elseif m.method and m.id then
    local f = requests[m.method]
    local result, err
    if f then
      local ok
      ok, result, err = pcall(f, m.params or {})
      if not ok then
        result, err = nil, { code = -32603, message = tostring(result) }
      end
      err = not result and (err or { code = -32602, message = 'there is no such proposal, or no window for it' }) or nil
    else
      err = { code = -32601, message = 'no ' .. m.method }
    end
    send({ id = m.id, result = result, error = err })
  elseif m.method == '$/cancelRequest' then
    question = question and question.id ~= (m.params or {}).id and question or nil
  elseif m.method then
    local f = notifications[m.method]
    if f then
      f(m.params or {})
    end
  elseif m.id and calls[m.id] then
    local f = calls[m.id]
    calls[m.id] = nil
    f(m.result, m.error)
  end
end

local function heard(output)
  part = part .. output
  diffs.reread()
  while true do
    local at = part:find('\n', 1, true)
    if not at then
      return
    end
    local line = part:sub(1, at - 1)
    part = part:sub(at + 1)
    local ok, err = pcall(function()
      receive(json.decode(line))
    end)
    if not ok then
      micro.InfoBar():Error('pollux: ' .. tostring(err):match('[^\n]*'))
    end
  end
end

local function gone()
  if not ready and failures == 0 and not stopped then
    micro.InfoBar():Error('pollux does not run: install it, or > set pollux.command PATH, and > pollux start')
  end
  job, ready, last, question, ended, failures = nil, false, nil, nil, time.Now(), failures + 1
  state = {}
end

function start()
  local command = config.GetGlobalOption('pollux.command')
  if command == '' then
    command = installed or 'pollux'
  end
  part, calls, stopped = '', {}, false
  job = shell.JobSpawn(command, { 'lsp' }, heard, nil, gone)
  local folder = goos.Getwd()
  request('initialize', {
    processId = goos.Getpid(),
    workspaceFolders = { { uri = uri(folder), name = folder:match('[^/\\]*$') } },
    initializationOptions = {
      pollux = {
        version = 1,
        context = true,
        openDiff = true,
        env = true,
        ide = { name = 'micro', displayName = 'micro' },
        openDiffs = diffs.shown(),
      },
    },
  }, function(result, err)
    if err then
      micro.InfoBar():Error('pollux: ' .. tostring(err.message))
      return
    end
    ready, failures = true, 0
    findings.forget()
    set_env({ set = result.capabilities.experimental.pollux.env })
    notify('initialized', json.empty)
    context()
    findings.tell()
  end)
end

-- heard_all tells pollux to end, and waits for that: micro's end would cut it off. It is false for one that was killed.
local function heard_all()
  local last_one = job
  request('shutdown', { keep = true })
  notify('exit', json.empty)
  for i = 1, 1000 do
    if last_one.ProcessState ~= nil then
      return last_one.ProcessState:Success()
    elseif i > 200 and last_one.Process == nil then
      return true -- it cannot be started, nor can another
    end
    time.Sleep(1e7) -- 10 ms
  end
  return true
end

-- leaving is called when micro is about to end. In place of a pollux that was killed one is started, to hear what only micro knows.
local function leaving()
  diffs.report()
  local lives = job and job.ProcessState == nil
  if stopped or not diffs.shown() and not (lives and next(calls)) then
    return -- there is nothing to tell, or nobody
  end
  if not (lives and heard_all()) and diffs.shown() then
    start()
    heard_all()
  end
end

---- What the user commands. ----

local function status_text()
  if not job then
    return 'pollux is not running; > pollux start'
  end
  local parts = { state.agents and state.agents ~= '' and state.agents or 'no agent is connected' }
  if state.context == 'paused' then
    parts[#parts + 1] = 'paused: nothing is shared'
  end
  if diffs.count() > 0 then
    parts[#parts + 1] = diffs.count() .. ' waiting'
  end
  return table.concat(parts, '; ')
end

local function answer()
  if not question then
    return say('nothing is asked')
  end
  local asked, choices = question, {}
  for i, choice in ipairs(asked.params.choices) do
    choices[i] = i .. ' ' .. choice
  end
  micro.InfoBar():Prompt(asked.params.message:gsub('%s+', ' ') .. ' [' .. table.concat(choices, ', ') .. '] ', '', 'Pollux', nil, function(reply, canceled)
    local choice = not canceled and asked.params.choices[tonumber(reply)] or json.null
    send({ id = asked.id, result = { choice = choice } })
    question = nil
  end)
end

local function mention(pane, words)
  if not is_file(pane.Buf) then
    return say('this is no file')
  end
  local chosen, first, final = selection(pane.Buf, pane.Cursor), nil, nil
  if chosen then
    first, final = chosen.start.line + 1, chosen['end'].line + (chosen['end'].character > 0 and 1 or 0)
  end
  request('workspace/executeCommand', {
    command = 'pollux.mention',
    arguments = { { uri = uri(pane.Buf.AbsPath), first = first, last = final, words = words ~= '' and words or nil } },
  }, function(result, err)
    say(err and tostring(err.message) or 'sent to ' .. tostring(result.session))
  end)
end

local function share(paused)
  state.context = paused and 'paused' or 'on' -- pollux's status comes later than the user's next key may
  if paused then
    execute('pollux.setContext', { state = 'paused' }, 'paused: nothing is shared')
  else
    execute('pollux.setContext', { state = 'on' }, 'agents see again what is open here')
  end
end

local commands = {
  accept = function(pane)
    diffs.decide(pane, 'accepted')
  end,
  reject = function(pane)
    diffs.decide(pane, 'rejected')
  end,
  review = function()
    diffs.review()
  end,
  answer = answer,
  pause = function() -- again resumes: one key is enough
    share(state.context ~= 'paused')
  end,
  resume = function()
    share(false)
  end,
  send = function(pane, words)
    mention(pane, words)
  end,
  history = function(_, number)
    past.history(number)
  end,
  undo = function(_, number)
    past.undo(number)
  end,
  rules = function()
    past.rules()
  end,
  policy = function(_, words)
    past.policy(words, goos.Getwd())
  end,
  status = function()
    say(status_text())
  end,
  start = function()
    if not job then
      start()
    end
  end,
  stop = function()
    stopped = true
    diffs.stopped()
    request('shutdown', { keep = false }, function()
      notify('exit', json.empty)
    end)
  end,
}

local function command(pane, args)
  local words = {}
  for i = 1, #args do
    words[i] = args[i]
  end
  local f = commands[table.remove(words, 1) or 'status']
  if not f then
    return micro.InfoBar():Error('pollux: accept, reject, review, answer, history, undo, rules, policy, pause, resume, send, status, start or stop')
  end
  if not job and f ~= commands.start and f ~= commands.status then
    return say(status_text())
  end
  f(pane, table.concat(words, ' '))
end

-- status is for the status line: $(pollux.status).
function status()
  return ready and status_text() or ''
end

---- What diff.lua needs, and what micro calls. ----

link = { leaving = leaving, position = position, uri = uri, notify = notify, request = request, say = say, panes = panes, current = current, is_file = is_file, text_of = text_of }

function preinit()
  config.RegisterGlobalOption('pollux', 'command', '')
  config.RegisterGlobalOption('pollux', 'autostart', true)
end

function init()
  ended = time.Now()
  config.AddRuntimeFile('pollux', config.RTHelp, 'help/pollux.md')
  config.MakeCommand('pollux', command, config.NoComplete)
  micro.SetStatusInfoFn('pollux.status')
  stopped = not config.GetGlobalOption('pollux.autostart')
  if not stopped then
    start()
  end
end

function deinit()
  notify('exit', json.empty)
end

-- A pane is the current one, and shows its text, only after micro has called this: pollux's answer to a question comes then.
function onBufPaneOpen()
  if ready then
    request('workspace/executeCommand', { command = 'pollux.status', arguments = {} }, moved)
  end
  return true
end

-- Files that > open puts into a pane that is there.
function onBufferOpen(buf)
  return not is_file(buf) or onBufPaneOpen()
end

-- After every action micro calls a function of its name.
for name in
  ([[Rune SetActive CursorUp CursorDown CursorPageUp CursorPageDown CursorLeft CursorRight CursorStart CursorEnd SelectToStart
  SelectToEnd SelectUp SelectDown SelectLeft SelectRight WordRight WordLeft SelectWordRight SelectWordLeft MoveLinesUp MoveLinesDown
  DeleteWordRight DeleteWordLeft SelectLine SelectToStartOfLine SelectToStartOfText SelectToStartOfTextToggle SelectToEndOfLine
  ParagraphPrevious ParagraphNext InsertNewline Backspace Delete InsertTab Save SaveAll SaveAs Find FindLiteral FindNext FindPrevious
  DiffPrevious DiffNext Undo Redo Copy CopyLine Cut CutLine DuplicateLine DeleteLine IndentSelection OutdentSelection OutdentLine
  IndentLine Autocomplete Paste PastePrimary SelectAll OpenFile Start End PageUp PageDown SelectPageUp SelectPageDown HalfPageUp
  HalfPageDown StartOfText StartOfTextToggle StartOfLine EndOfLine JumpLine JumpToMatchingBrace Deselect Quit ForceQuit QuitAll AddTab
  PreviousTab NextTab NextSplit PreviousSplit Unsplit VSplit HSplit MousePress MouseDrag MouseRelease MouseMultiCursor Escape]]):gmatch('%a+')
do
  getfenv(1)['on' .. name] = moved
end

function onSave()
  findings.saved()
  return moved()
end
