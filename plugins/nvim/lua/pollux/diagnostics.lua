-- What the tools of the editor find: language servers, linters, whatever speaks to vim.diagnostic.
local context = require('pollux.context')
local text = require('pollux.text')
local M = {}

local api = vim.api

local send -- the function that takes what is found in a file, set by start
local known = {} -- the buffers that a tool has looked at, with their files
local due = {} -- those that are to be told

-- A place of vim.diagnostic's, whose columns are bytes, as LSP has it.
local function place(buf, row, col)
  local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  return { line = row, character = text.utf16(line, col) }
end

local function tell(buf)
  local path = api.nvim_buf_is_valid(buf) and context.file(buf) or nil
  if known[buf] and known[buf] ~= path then -- it has another name, or is gone
    send({ uri = text.uri(known[buf]), diagnostics = vim.NIL })
  end
  known[buf] = path
  if not path then
    return
  end
  local all = {}
  for _, d in ipairs(vim.diagnostic.get(buf)) do
    all[#all + 1] = {
      range = { start = place(buf, d.lnum, d.col), ['end'] = place(buf, d.end_lnum or d.lnum, d.end_col or d.col) },
      severity = d.severity,
      source = d.source,
      message = d.message,
    }
  end
  send({ uri = text.uri(path), diagnostics = all })
end

local function flush()
  local all = due
  due = {}
  for buf in pairs(send and all or {}) do
    tell(buf)
  end
end

local function touch(buf)
  if next(due) == nil then
    vim.defer_fn(flush, 200)
  end
  due[buf] = true
end

--- From now on to is called with what is found in each file that a tool looks at; where none does, nothing is said.
function M.start(to)
  send = to
  local group = api.nvim_create_augroup('pollux_diagnostics', {})
  api.nvim_create_autocmd('DiagnosticChanged', {
    group = group,
    callback = function(event)
      touch(event.buf)
    end,
  })
  api.nvim_create_autocmd({ 'BufUnload', 'BufFilePost' }, {
    group = group,
    callback = function(event)
      if known[event.buf] then
        touch(event.buf)
      end
    end,
  })
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if known[buf] or #vim.diagnostic.get(buf) > 0 then
      touch(buf)
    end
  end
end

function M.stop()
  send = nil
  pcall(api.nvim_del_augroup_by_name, 'pollux_diagnostics')
end

return M
