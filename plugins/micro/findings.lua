-- What micro's linters say of the files that are open, for agents that ask for problems.
local shell = import('micro/shell')
local buffer = import('micro/buffer')

local told = {} -- by URI, what pollux knows

findings = {}

-- at is a place of a message's; one of a whole line has no column.
local function at(buf, loc)
  return link.position(buf, buffer.Loc(math.max(loc.X, 0), loc.Y))
end

-- list is what a buffer's linters have found, in LSP's words.
local function list(buf)
  local all, messages = {}, buf.Messages or {}
  for i = 1, #messages do
    local m = messages[i]
    all[#all + 1] = {
      range = { start = at(buf, m.Start), ['end'] = at(buf, m.End) },
      severity = m.Kind == buffer.MTError and 1 or m.Kind == buffer.MTWarning and 2 or 3,
      source = m.Owner,
      message = m.Msg,
    }
  end
  return all
end

-- tell says what is new. Of a file in which nothing was ever found nobody knows whether a linter looks at it.
function findings.tell()
  link.panes(function(pane)
    if not link.is_file(pane.Buf) then
      return
    end
    local uri = link.uri(pane.Buf.AbsPath)
    local all = list(pane.Buf)
    local text = json.encode(all)
    if #all > 0 and told[uri] ~= text or #all == 0 and told[uri] and told[uri] ~= '' then
      told[uri] = #all > 0 and text or ''
      link.notify('pollux/didChangeDiagnostics', { uri = uri, diagnostics = all })
    end
  end)
end

-- saved looks for some seconds: linters answer later, and call nobody.
function findings.saved()
  for _, seconds in ipairs({ '0.3', '1', '3', '10' }) do
    shell.JobSpawn('sleep', { seconds }, nil, nil, findings.tell)
  end
end

-- forget is for a new pollux.
function findings.forget()
  told = {}
end
