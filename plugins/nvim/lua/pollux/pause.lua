-- Whether the user pauses, and what they typed last: nothing may take the keys of somebody who types.
local config = require('pollux.config')
local M = {}

local api, uv = vim.api, vim.uv or vim.loop

local key = { at = 0, mode = 'n', tick = 0 } -- the last one typed: when, in which mode, on which text

local function age()
  return uv.hrtime() / 1e6 - key.at
end

--- Whether a write of a buffer is the user's: typed as a command, or by a key that did nothing else. Saving
--- by itself, after a change or a pause, must not accept.
function M.by_hand(buf)
  if key.mode:match('^c') then
    return age() < 2000
  end
  return key.mode:match('^n') and age() < 200 and key.tick == api.nvim_buf_get_changedtick(buf)
end

--- Whether nothing on the screen waits for a key of the user's.
function M.free()
  local mode = api.nvim_get_mode()
  return not (mode.blocking or vim.fn.getcmdwintype() ~= '' or mode.mode:match('^c') or mode.mode:match('^r'))
end

--- Whether the user pauses, and records nothing.
function M.now()
  local mode = api.nvim_get_mode().mode
  return M.free() and vim.fn.reg_recording() == '' and age() >= config.get().idle and mode:match('^[nt]') ~= nil and not mode:match('^no')
end

--- Listens to keys from now on.
function M.start()
  M.space = M.space or api.nvim_create_namespace('pollux_keys')
  vim.on_key(function()
    key.at, key.mode, key.tick = uv.hrtime() / 1e6, api.nvim_get_mode().mode, api.nvim_buf_get_changedtick(0)
  end, M.space)
end

return M
