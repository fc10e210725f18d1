-- The hands of a Neovim's user, for TestChaos: one line of JSON in, one line out, on the socket g:chaos.
local api, uv = vim.api, vim.loop
local diff, pollux = require('pollux.diff'), require('pollux')

local function find(id)
  for _, d in ipairs(diff.list()) do
    if d.id == id then
      return d
    end
  end
end

local function shown(d)
  return d.right ~= nil and api.nvim_buf_is_valid(d.right) and #vim.fn.win_findbuf(d.right) > 0
end

local hands = {}

-- Starts the companion at once instead of by and by, and says how it is.
function hands.start()
  if pollux.state().status ~= 'running' and pollux.state().status ~= 'starting' then
    pollux.start()
  end
  local s, pid = pollux.state(), nil
  for _, channel in ipairs(api.nvim_list_chans()) do
    local lives, job = pcall(vim.fn.jobpid, channel.id) -- not of one that has just ended
    pid = channel.stream == 'job' and lives and job or pid
  end
  return { status = s.status, error = s.error, pid = pid, env = next(s.env) and s.env or nil }
end

function hands.list()
  local all = {}
  for _, d in ipairs(diff.list()) do
    all[#all + 1] = { id = d.id, path = d.path, content = diff.content(d), shown = shown(d) }
  end
  return all[1] and all or nil
end

function hands.look(m)
  local d, here = find(m.id), diff.current()
  if d and not shown(d) then
    pcall(vim.cmd, 'silent! Pollux next')
  end
  return { here = here and here.id }
end

function hands.edit(m)
  local d = find(m.id)
  if not d or not shown(d) then
    return nil
  end
  local was = diff.content(d)
  api.nvim_buf_set_lines(d.right, m.at, m.at, false, { m.text })
  return { was = was, content = diff.content(d) }
end

function hands.accept(m)
  local d = find(m.id)
  return { was = d ~= nil and diff.content(d) == m.content and diff.accept(d) }
end

-- How a decision stands: pollux has not answered, the diff is gone, or it still waits.
function hands.decision(m)
  local d = find(m.id)
  return { open = d ~= nil and d.deciding ~= nil, gone = d == nil }
end

function hands.reject(m)
  local d = find(m.id)
  if d then
    diff.reject(d)
  end
end

local server = uv.new_pipe(false)
server:bind(vim.g.chaos)
server:listen(4, function()
  local peer, rest = uv.new_pipe(false), ''
  server:accept(peer)
  peer:read_start(function(_, data)
    if not data then
      return os.exit(1) -- the test has ended
    end
    rest = rest .. data
    for at in
      function()
        return rest:find('\n', 1, true)
      end
    do
      local line = rest:sub(1, at - 1)
      rest = rest:sub(at + 1)
      vim.schedule(function()
        local m = vim.json.decode(line)
        local ok, result = pcall(hands[m['do']], m)
        peer:write(vim.json.encode({ error = not ok and tostring(result) or nil, result = ok and result or vim.NIL }) .. '\n')
      end)
    end
  end)
end)
