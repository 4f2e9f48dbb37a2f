# Fetches the root over HTTP into memory.
# The parts share their variables.
# shellcheck shell=dash disable=SC2034,SC2154

most_attempts=30
most_wrong=3
# Attempts in which no card got an address.
missed=0
# MiB that the live system requires beside the root, less what this initrd frees.
margin=100
image=/run/flasher/root.squashfs
# What the server said last before the bytes.
headers=/run/head
# Seconds that a server has for its answer, and for the next bytes of a transfer; less where another one
# can be asked.
answer_time=10
transfer_time=20

# Tries again after 1, 2, 4 … 30 seconds: servers restart, and switches are slow to forward.
# After progress the count starts over: a bad line may take as long as it requires.
fetch_over_network() {
  find_source
  param flasher.attempts && most_attempts=$value
  pause=1 attempt=1 wrong=0 most=0
  until try_cards; do
    have=$(size_of "$image")
    [ "$have" -le $most ] || most=$have pause=1 attempt=1
    attempt=$((attempt + 1))
    [ $attempt -le "$most_attempts" ] ||
      fail "gave up after $most_attempts attempts: $trouble" \
        'check that the server runs and can be reached; then restart this machine'
    say "trying again in $pause s (attempt $attempt of $most_attempts)"
    sleep $pause
    pause=$((pause * 2))
    [ $pause -le 30 ] || pause=30
    plug_in
  done
  note origin http
  note url "$url"
}

# The digest is the one that this initrd was built with, unless the command line names another.
find_source() {
  if param flasher.mac; then mac=$(mac_of "$value")
  elif param BOOTIF; then mac=$(mac_of "${value#01-}")
  fi
  read_manifest
  if param flasher.squashfs; then urls=$(base_of "$value")
  elif param flasher.server; then urls=$(bases_of "$value" | sed "s|\$|/boot/$name|")
  else
    fail 'the command line names no server: neither flasher.server= nor flasher.squashfs=' \
      'start this machine by the script of its server, or add flasher.server=ADDRESS'
  fi
  others=$(other_bases)
  [ -n "$others" ] || return 0
  answer_time=3 transfer_time=10
  file=${urls##*/}
  for other in $others; do urls="$urls $other/boot/$file"; done
}

# One attempt: with the current address, else with one card after the other. A card whose address leads
# nowhere is skipped, and tried again in the next attempt.
try_cards() {
  [ -z "$address" ] || { fetch; return; }
  for card in $(list_cards); do ip link set "$card" up 2>/dev/null; done
  for _ in 1 2 3 4 5 6; do
    answered=
    for card in $(list_candidates); do
      has_link "$card" && ask_for_address "$card" || continue
      answered=yes
      fetch && return 0
      # Only the transfer broke off: the address is kept.
      [ -z "$address" ] || return 1
    done
    [ -z "$answered" ] || return 1
    usleep 500000
  done
  missed=$((missed + 1))
  trouble=$(describe_cards)
  say "$trouble"
  return 1
}

list_cards() {
  for path in /sys/class/net/*; do
    [ "$(cat "$path/type" 2>/dev/null)" != 1 ] || echo "${path##*/}"
  done
}

mac_on() { cat "/sys/class/net/$1/address"; }
has_link() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; }

# The card that this machine booted from. The others follow after three attempts without an address,
# because firmware may report another MAC address than Linux.
list_candidates() {
  others=
  for name in $(list_cards); do
    if [ "$(mac_on "$name")" = "$mac" ]; then echo "$name"; else others="$others $name"; fi
  done
  if [ -z "$mac" ] || [ $missed -ge 3 ]; then echo "$others"; fi
}

ask_for_address() { # CARD
  say "asking for an address on $1 ($(mac_on "$1"))"
  udhcpc -i "$1" -n -q -f -t 5 -T 2 -A 1 -s /etc/udhcpc.script >/dev/null 2>&1 || {
    say "no answer on $1"
    return 1
  }
  address=$(ip -4 -o addr show dev "$1" | awk '{ print $4; exit }')
  interface=$1
  say "$1 has $address"
}

describe_cards() {
  seen=
  for card in $(list_cards); do
    has_link "$card" && link='with link' || link='no link'
    seen="$seen${seen:+, }$card $(mac_on "$card") $link"
  done
  [ -n "$seen" ] || seen='none (no driver found one)'
  echo "no address${mac:+ for $mac}; network cards: $seen"
}

fetch() {
  read_head || return 1
  set_clock
  check_memory
  say "fetching $url ($(mib "$size") MiB)"
  transfer || return 1
  if [ "$got" = "$sum" ]; then
    say 'digest verified'
    return 0
  fi
  rm -f "$image"
  most=0
  wrong=$((wrong + 1))
  # Another server may have the right one.
  urls="$(without "$url") $url"
  trouble="its digest is $got, and this boot system accepts only $sum"
  say "wrong digest: $trouble"
  [ $wrong -lt $most_wrong ] || fail "$url: $trouble" \
    'the files of the server are not of one release: install kernel, initrd and squashfs together'
  return 1
}

without() { for each in $urls; do [ "$each" = "$1" ] || echo "$each"; done; } # URL

# Reads size and date from the first URL that answers, which is the first from then on. An address that
# reaches none is given up.
read_head() {
  trouble=
  for url in $urls; do
    if wget -S --spider -T $answer_time "$url" 2>"$headers"; then
      urls="$url $(without "$url")"
      size=$(awk 'tolower($1) == "content-length:" { n = $2 + 0 } END { print n + 0 }' "$headers")
      [ "$size" -gt 0 ] || size=$manifest_size
      return 0
    fi
    heard=$(tame <"$headers")
    say "$url: $heard"
    trouble="$trouble${trouble:+; }$url: $heard"
  done
  address=
  return 1
}

# A transfer that broke off is resumed. A new one is hashed while it is fetched; a resumed one at the end,
# because wget starts over if the server cannot resume.
transfer() {
  have=$(size_of "$image")
  got=
  if [ "$have" -lt "$size" ]; then
    [ "$have" -gt 0 ] || hash_while_fetching
    (while sleep 5; do say "fetched $(mib "$(size_of "$image")") of $(mib "$size") MiB"; done) &
    teller=$!
    wget -q -c -T $transfer_time -O "$image" "$url" 2>/dev/null
    kill $teller
    wait $teller 2>/dev/null
    if [ "$have" = 0 ]; then
      rm "$folder/fetching"
      wait $hasher
      got=$(cat "$folder/digest")
      rm "$folder/digest"
    fi
    have=$(size_of "$image")
  fi
  if [ "$have" -lt "$size" ]; then
    trouble="$url: the transfer broke off at $(mib "$have") of $(mib "$size") MiB"
    say "${trouble#"$url: "}"
    # One that answers may still send no bytes.
    [ -z "$others" ] || urls="$(without "$url") $url"
    return 1
  fi
  [ -n "$got" ] || got=$(sha256sum <"$image")
  got=${got%% *}
}

# Reads what is written until wget has ended, on another processor where there is one.
hash_while_fetching() {
  : >"$image"
  : >"$folder/fetching"
  { while [ -e "$folder/fetching" ]; do cat; usleep 100000; done; cat; } <"$image" | sha256sum >"$folder/digest" &
  hasher=$!
}

check_memory() {
  param flasher.margin && margin=$value
  need=$(($(mib $((size - $(size_of "$image")))) + margin))
  free=$(memory_of MemAvailable)
  [ "$free" -ge $need ] || fail "$free MiB of memory are free, and the live system needs $need" \
    'add memory (384 MiB are enough), or start from the USB stick, which needs less'
}

# Certificates require a clock that is roughly right. It is never set back.
set_clock() {
  told=$(sed -n 's/^ *[Dd][Aa][Tt][Ee]: *//p' /run/head | tail -n 1)
  told=$(date -u -D '%a, %d %b %Y %T' -d "$told" +%s 2>/dev/null) || return 0
  behind=$((told - $(date -u +%s)))
  [ $behind -gt 60 ] || return 0
  date -u -s "@$told" >/dev/null && say "clock set by the server: it was $behind seconds behind"
}
