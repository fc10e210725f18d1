-- JSON-RPC 2.0 with a child process, one message a line.
local M = {}

--- Starts command. on.request(method, params, reply, open) answers by calling
--- reply(result) or reply(nil, {code, message}), open() says whether it is still
--- waited for; on.notification(method, params); on.exit(code). Returns a client,
--- or nil and the reason.
function M.start(command, on)
  local client = { calls = {}, count = 0 }
  local parts, waiting = {}, {}

  local function receive(line)
    local ok, m = pcall(vim.json.decode, line, { luanil = { object = true } })
    if not ok or type(m) ~= 'table' then
      return
    end
    if m.method and m.id ~= nil then
      local answered = false
      waiting[m.id] = true
      on.request(m.method, m.params or {}, function(result, err)
        if not answered then
          answered, waiting[m.id] = true, nil
          client.send({ jsonrpc = '2.0', id = m.id, result = not err and (result or vim.NIL) or nil, error = err })
        end
      end, function()
        return waiting[m.id] ~= nil
      end)
    elseif m.method == '$/cancelRequest' then
      waiting[(m.params or {}).id or ''] = nil
    elseif m.method then
      on.notification(m.method, m.params or {})
    elseif m.id ~= nil then
      local call = client.calls[m.id]
      client.calls[m.id] = nil
      if call then
        call(m.result, m.error)
      end
    end
  end

  local ok, job = pcall(vim.fn.jobstart, command, {
    detach = true, -- it ends by itself, and a Neovim that gets signals while it waits for children hangs
    on_stdout = function(_, data)
      -- A message ends where the list has its next item.
      parts[#parts + 1] = data[1]
      for i = 2, #data do
        local line = table.concat(parts)
        parts = { data[i] }
        if line ~= '' then
          receive(line)
        end
      end
    end,
    on_exit = function(_, code)
      client.job, waiting = nil, {}
      on.exit(code)
    end,
  })
  if not ok or job <= 0 then
    return nil, ok and 'it cannot be run' or tostring(job)
  end
  client.job = job

  function client.send(message)
    if client.job then
      pcall(vim.fn.chansend, client.job, vim.json.encode(message) .. '\n')
    end
  end

  --- Whether the child has not ended, also just now.
  function client.alive()
    return client.job and vim.fn.jobwait({ client.job }, 0)[1] == -1
  end

  function client.notify(method, params)
    client.send({ jsonrpc = '2.0', method = method, params = params })
  end

  --- callback(result, err) is called when the answer comes, or never.
  function client.call(method, params, callback)
    client.count = client.count + 1
    client.calls[client.count] = callback or function() end
    client.send({ jsonrpc = '2.0', id = client.count, method = method, params = params })
  end

  return client
end

return M
