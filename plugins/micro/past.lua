-- What was proposed before, and the rules.
local micro = import('micro')
local buffer = import('micro/buffer')

local listed = {} -- the past proposals of the last list, newest first

past = {}

local function ask(command, argument, done)
  link.request('workspace/executeCommand', { command = command, arguments = { argument } }, function(result, err)
    if err then
      return micro.InfoBar():Error('pollux: ' .. tostring(err.message))
    end
    done(result)
  end)
end

-- show opens a tab for a text that nobody changes.
local function show(name, text)
  local pane = link.current()
  if pane then
    local buf = buffer.NewBuffer(text, '')
    buf.Type.Scratch, buf.Type.Readonly = true, true
    buf:SetName(name)
    pane:HandleCommand('tab')
    micro.CurPane():OpenBuffer(buf)
    return buf
  end
end

local function line(n, e)
  local what = e.outcome .. (e.edited and ', edited' or '') .. (e.policy and ', by a rule' or '') .. (e.undone and ', undone' or '')
  return ('%d  %s  %s  %s  %s'):format(n, e.at:sub(1, 16):gsub('T', ' '), e.path, what, e.owner)
end

local function one(number)
  local e = listed[tonumber(number)]
  if not e then
    return link.say('there is no such entry; > pollux history lists them')
  end
  return e
end

-- history lists past proposals, or shows the one of a number.
function past.history(number)
  if number ~= '' then
    local e = one(number)
    return e
      and ask('pollux.history', { id = e.id }, function(texts)
        local name = e.path:match('[^/\\]*$')
        local before = show(name .. ' (before)', texts.oldText)
        if before then
          local after = buffer.NewBuffer(texts.finalText, '')
          after.Type.Scratch, after.Type.Readonly = true, true
          after:SetName(name .. ' (' .. e.outcome .. ')')
          after:SetDiffBase(before:Bytes())
          after:SetOption('diffgutter', 'true')
          micro.CurPane():VSplitIndex(after, true)
        end
      end)
  end
  ask('pollux.history', json.empty, function(result)
    listed = result.entries
    if #listed == 0 then
      return link.say('nothing was proposed here yet')
    end
    local lines = {}
    for i, e in ipairs(listed) do
      lines[i] = line(i, e)
    end
    show('past proposals', table.concat(lines, '\n') .. '\n')
    link.say('> pollux history NUMBER shows one, > pollux undo NUMBER takes its change back')
  end)
end

-- undo takes a change back: that of a number, or the newest one that can be.
function past.undo(number)
  local function back(e)
    ask('pollux.undo', { id = e.id }, function()
      diffs.follow(e.path)
      link.say(e.path:match('[^/\\]*$') .. ' has its earlier text again')
    end)
  end
  if number ~= '' then
    local e = one(number)
    return e and back(e)
  end
  ask('pollux.history', json.empty, function(result)
    for _, e in ipairs(result.entries) do
      if e.undoable and not e.undone then
        return back(e)
      end
    end
    link.say('there is nothing to undo')
  end)
end

-- rules shows what decides without the user, the newest rule first.
function past.rules()
  ask('pollux.status', json.empty, function(status)
    local lines = {}
    for _, r in ipairs(status.rules) do
      table.insert(lines, 1, r.mode .. ' ' .. (r.pattern or r.owner or 'everything'))
    end
    link.say(#lines > 0 and 'rules, the newest first: ' .. table.concat(lines, '; ') or 'there is no rule: you are asked about everything')
  end)
end

-- policy makes a rule: what is done, and for which path or pattern.
function past.policy(words, folder)
  local policy, pattern = words:match('^(%S+)%s*(.*)$')
  if not policy then
    return link.say('which rule? > pollux policy ask, accept or terminal, and a path or a pattern where it is not for everything')
  end
  local argument = { policy = policy }
  if pattern ~= '' then
    argument.scope, argument.pattern = 'pattern', pattern:match('^[/\\]') and pattern or folder .. '/' .. pattern
  end
  ask('pollux.setPolicy', argument, function()
    link.say(policy .. ': ' .. (argument.pattern or 'everything'))
  end)
end
