-- The command :Pollux. See :help :Pollux
local pollux = require('pollux')
local M = {}
local say = require('pollux.say')
local fail = say.fail

local function tell(result, err)
  if err then
    return fail(err.message)
  end
  return result
end

-- The diff that a command is about.
local function chosen()
  local diff = require('pollux.diff')
  local d = diff.current() or diff.list()[1]
  if not d then
    fail('no diff is open')
  end
  return d
end

local commands = {}

function commands.accept()
  local d = chosen()
  if d then
    require('pollux.diff').accept(d)
  end
end

function commands.reject()
  local d = chosen()
  if d then
    require('pollux.diff').reject(d)
  end
end

for _, how in ipairs({ 'keep', 'take' }) do
  commands[how] = function()
    local d = chosen()
    if d then
      require('pollux.diff').settle(d, how)
    end
  end
end

function commands.merge()
  require('pollux.reload').merge()
end

commands['accept-all'] = function(args)
  local d = chosen()
  if not d then
    return
  end
  -- This one with its edits, of which the companion hears first: the rule decides only what nobody edited.
  require('pollux.diff').report(d)
  pollux.execute('pollux.setPolicy', { policy = 'accept', scope = args[1] == 'file' and 'file' or 'session', diffId = d.id }, function(result, err)
    if tell(result, err) then
      require('pollux.diff').accept(d)
    end
  end)
end

-- The rules in words, the newest first: it decides.
local function rules(list)
  local lines = {}
  for i = #list, 1, -1 do
    local r = list[i]
    lines[#lines + 1] = ('%-8s  %s'):format(r.mode, r.pattern ~= nil and r.pattern ~= '' and r.pattern or r.owner ~= nil and r.owner ~= '' and r.owner or 'everything')
  end
  if #lines == 0 then
    lines = { 'ask       everything' }
  end
  return lines
end

function commands.policy(args)
  if not args[1] then
    return pollux.execute('pollux.status', nil, function(status, err)
      if tell(status, err) then
        local lines = rules(status.rules or {})
        lines[#lines + 1] = ':Pollux policy ask|accept|terminal [session|file|pattern GLOB]'
        say.lines(table.concat(lines, '\n'))
      end
    end)
  end
  local argument = { policy = args[1], scope = args[2], pattern = args[3] }
  local d = require('pollux.diff').current()
  argument.diffId = d and d.id
  pollux.execute('pollux.setPolicy', argument, function(result, err)
    if tell(result, err) then
      say.say(('%d %s; :Pollux policy lists them'):format(#result.rules, #result.rules == 1 and 'rule' or 'rules'))
    end
  end)
end

function commands.review(args)
  local diff = require('pollux.diff')
  local d = not args[1] and chosen()
  if args[1] == 'next' then
    d = diff.following()
  elseif args[1] then
    d = diff.list()[tonumber(args[1])]
  end
  if d then
    d.held = nil
    local problem = diff.show(d)
    if problem then
      fail('the diff cannot be shown: ' .. problem)
    end
  elseif args[1] == 'next' then
    fail('no other diff waits')
  elseif args[1] then
    fail('there is no diff ' .. args[1])
  end
end

local function share(to)
  pollux.execute('pollux.setContext', { state = to }, function(result, err)
    if tell(result, err) then
      pollux.state().paused = to == 'paused' -- the status comes later than the user's next key may
      say.say(to == 'on' and 'agents are told what you look at' or 'agents are told nothing of what you look at; :Pollux resume ends that')
    end
  end)
end

function commands.pause() -- again resumes: one key is enough
  share(pollux.state().paused and 'on' or 'paused')
end

function commands.resume()
  share('on')
end

function commands.page()
  pollux.execute('pollux.review', nil, tell)
end

function commands.start()
  pollux.start()
end

function commands.stop()
  pollux.stop()
end

function commands.restart()
  if pollux.alive() then -- else what is open is announced to the next one
    pollux.stop()
  end
  pollux.start()
end

function commands.status()
  local state = pollux.state()
  pollux.execute('pollux.status', nil, function(status, err)
    local lines = { ('companion  %s'):format(state.status) }
    if err then
      lines[#lines + 1] = state.error or err.message
    else
      lines[1] = ('companion  %s, pollux %s, port %d%s'):format(state.status, status.version, status.port, status.resumed and ', resumed' or '')
      lines[#lines + 1] = 'folders    ' .. table.concat(status.roots or {}, ', ')
      if state.paused then
        lines[#lines + 1] = 'sharing    paused; :Pollux resume ends that'
      elseif (status.sharing or '') ~= '' then
        lines[#lines + 1] = 'sharing    ' .. status.sharing
      end
      for _, s in ipairs(status.sessions or {}) do
        lines[#lines + 1] = 'session    ' .. s.name
      end
      local mine = {} -- the numbers of :Pollux review
      for i, d in ipairs(require('pollux.diff').list()) do
        mine[d.id] = i
      end
      for _, d in ipairs(status.diffs or {}) do
        lines[#lines + 1] = ('diff %-5s %s%s'):format(mine[d.diffId] or '-', d.title, mine[d.diffId] and '' or ', on the page (:Pollux page)')
      end
      if status.lastError or state.error then
        lines[#lines + 1] = 'last error ' .. (status.lastError or state.error)
      end
    end
    say.lines(table.concat(lines, '\n'))
  end)
end

function commands.log()
  pollux.execute('pollux.status', nil, function(status, err)
    if tell(status, err) then
      vim.cmd('tabedit ' .. vim.fn.fnameescape(status.log))
      vim.cmd('normal! G')
    end
  end)
end

for _, what in ipairs({ 'history', 'undo', 'rules' }) do
  commands[what] = function()
    require('pollux.past')[what]()
  end
end

for _, what in ipairs({ 'run', 'toggle', 'focus' }) do
  commands[what] = function(args)
    require('pollux.terminal')[what](args)
  end
end

function commands.send(args, command)
  require('pollux.send').send(args, command)
end

function commands.problem(args)
  require('pollux.send').problem(args)
end

function M.run(command)
  local args = vim.list_extend({}, command.fargs)
  local name = table.remove(args, 1) or 'status'
  if not commands[name] then
    return fail(('no :Pollux %s; see :help :Pollux'):format(name))
  end
  commands[name](args, command)
end

function M.complete(lead, line)
  local words = vim.split(line, '%s+')
  local choices = {}
  if #words <= 2 then
    choices = vim.tbl_keys(commands)
  elseif words[2] == 'accept-all' then
    choices = { 'session', 'file' }
  elseif words[2] == 'review' then
    choices = { 'next' }
  elseif vim.tbl_contains({ 'run', 'toggle', 'focus' }, words[2]) then
    choices = #words == 3 and { 'claude', 'codex', 'copilot', 'gemini', 'opencode', 'qwen' } or { '--continue', '--resume' }
  elseif words[2] == 'policy' then
    choices = #words == 3 and { 'ask', 'accept', 'terminal' } or #words == 4 and { 'session', 'file', 'pattern' } or {}
  end
  choices = vim.tbl_filter(function(c)
    return vim.startswith(c, lead)
  end, choices)
  table.sort(choices)
  return choices
end

return M
