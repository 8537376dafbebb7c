"""What does Valkey do in one step? Lua scripts: the same book as book.py keeps, by the server's own clock."""
from typing import Final

# KEYS: the nodes, then a key for each question. ARGV: who asks, then eight words for each: kind, limit, want, least, back, holding,
# gone, base. Answers: given, left, seconds to wait, for each. Numbers are written by format: Lua's own way loses digits.
LEASE: Final = """
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1000000
local holder, out = ARGV[1], {}
local function whole(n) return string.format('%.0f', n) end
local function given(left, want, least) if left >= least then return math.max(math.min(want, left), 0) end return 0 end

local function minute(key, limit, want, least, back)
  local step = 60 / limit
  local tat = math.max(tonumber(redis.call('GET', key) or 0), now) - back * step
  tat = math.max(tat, now)
  local left = math.max(math.floor((now + 60 - tat + 0.000001) / step), 0)
  local n = given(left, want, least)
  local wait = n < least and math.max(tat + least * step - now - 60, 0) or 0
  tat = tat + n * step
  redis.call('SET', key, string.format('%.6f', tat), 'PX', math.ceil((tat - now) * 1000) + 1000)
  return n, left - n, wait
end

local function day(key, limit, want, least, back)
  local slot = math.floor(now / 900)
  local rows, used, kept = redis.call('HGETALL', key), 0, {}
  for i = 1, #rows, 2 do
    local number, n = tonumber(rows[i]), tonumber(rows[i + 1])
    if number < slot - 96 then redis.call('HDEL', key, rows[i]) else kept[#kept + 1] = {number, n}; used = used + n end
  end
  table.sort(kept, function(a, b) return a[1] < b[1] end)
  if back < 0 then redis.call('HINCRBY', key, slot, whole(-back)); used = used - back end
  for i = #kept, 1, -1 do
    local n = math.min(kept[i][2], back)
    if n > 0 then redis.call('HINCRBY', key, kept[i][1], whole(-n)); kept[i][2] = kept[i][2] - n; used = used - n; back = back - n end
  end
  local left, wait = math.max(limit - used, 0), 0
  local n = given(left, want, least)
  if n > 0 then redis.call('HINCRBY', key, slot, whole(n)) end
  if n < least then
    local excess = used + least - limit
    wait = 86400
    for i = 1, #kept do
      excess = excess - kept[i][2]
      if excess <= 0 then wait = math.min(math.max((kept[i][1] + 97) * 900 - now, 0), 86400); break end
    end
  end
  redis.call('EXPIRE', key, 90000)
  return n, left - n, wait
end

local function held(key, limit, want, least, holding, gone, base)
  local before = redis.call('HGET', key, '')
  if before then gone = tonumber(before) + gone else gone = base end
  redis.call('HSET', key, '', whole(gone))
  local free, rows = limit - gone - holding, redis.call('HGETALL', key)
  for i = 1, #rows, 2 do
    local who = rows[i]
    if who ~= '' and who ~= holder then
      if redis.call('ZSCORE', KEYS[1], who) then free = free - tonumber(rows[i + 1]) else redis.call('HDEL', key, who) end
    end
  end
  local n = given(free, want, least)
  if holding + n == 0 then redis.call('HDEL', key, holder) else redis.call('HSET', key, holder, whole(holding + n)) end
  redis.call('EXPIRE', key, gone > 0 and 3024000 or 172800)
  return n, math.max(free - n, 0), n < least and 1 or 0
end

for i = 2, #KEYS do
  local at, a = 2 + (i - 2) * 8, {}
  for j = 1, 7 do a[j] = tonumber(ARGV[at + j]) end
  local n, left, wait
  if ARGV[at] == 'minute' then n, left, wait = minute(KEYS[i], a[1], a[2], a[3], a[4])
  elseif ARGV[at] == 'day' then n, left, wait = day(KEYS[i], a[1], a[2], a[3], a[4])
  else n, left, wait = held(KEYS[i], a[1], a[2], a[3], a[5], a[6], a[7]) end
  out[#out + 1] = whole(n); out[#out + 1] = whole(left); out[#out + 1] = string.format('%.6f', wait)
end
return out
"""

# KEYS: the nodes, the epoch. ARGV: who lives, a new epoch, seconds after which a node that said nothing is gone.
# Answers: how many nodes there are, the epoch that counts: another one than before means that everything was lost.
BEAT: Final = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]))
redis.call('EXPIRE', KEYS[1], 3024000)
redis.call('SET', KEYS[2], ARGV[2], 'NX')
redis.call('EXPIRE', KEYS[2], 3024000)
return {redis.call('ZCARD', KEYS[1]), redis.call('GET', KEYS[2])}
"""
