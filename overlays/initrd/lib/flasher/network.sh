# The root over HTTP, into memory.

most_attempts=30
most_wrong=3
# MiB that the live system takes beside the root, less what this initrd gives back.
margin=100
image=/run/flasher/root.squashfs

# Once more after 1, 2, 4 … 30 seconds: a server that is restarted, a switch that takes its time.
fetch_over_network() {
  find_source
  pause=1 attempt=1 wrong=0
  until connect && fetch; do
    attempt=$((attempt + 1))
    [ $attempt -le $most_attempts ] ||
      fail "$url: no success in $most_attempts attempts, the last one: $trouble" \
        'look whether the server runs and the network reaches it; then start this machine again'
    say "trying again in $pause s (attempt $attempt of $most_attempts)"
    sleep $pause
    pause=$((pause * 2))
    [ $pause -le 30 ] || pause=30
    plug_in
  done
  note origin http
  note url "$url"
}

# The digest is the one that this initrd was built with, unless the command line has another.
find_source() {
  param flasher.mac && mac=$(mac_of "$value")
  read_manifest
  if param flasher.squashfs; then url=$(base_of "$value")
  elif param flasher.server; then url=$(base_of "$value")/boot/$name
  else
    fail 'the command line names no server: neither flasher.server= nor flasher.squashfs=' \
      'start this machine by the script of its server, or add flasher.server=ADDRESS'
  fi
}

# An address on the card that this machine booted by, else on any card with a link. Firmware may
# know a card by another address than Linux: after three attempts all cards are tried.
connect() {
  [ -z "$address" ] || return 0
  for card in /sys/class/net/*; do
    is_ethernet "$card" && ip link set "${card##*/}" up 2>/dev/null
  done
  for turn in 1 2 3 4 5 6; do
    for card in /sys/class/net/*; do
      is_candidate "$card" && ask_for_address "${card##*/}" && return 0
    done
    usleep 500000
  done
  trouble=$(describe_cards)
  say "$trouble"
  return 1
}

is_ethernet() { [ "$(cat "$1/type" 2>/dev/null)" = 1 ]; }
has_link() { [ "$(cat "$1/carrier" 2>/dev/null)" = 1 ]; }

is_candidate() {
  is_ethernet "$1" && has_link "$1" || return 1
  [ -z "$mac" ] || [ $attempt -gt 3 ] || [ "$(cat "$1/address")" = "$mac" ]
}

ask_for_address() { # CARD
  say "asking for an address on $1 ($(cat "/sys/class/net/$1/address"))"
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
  for card in /sys/class/net/*; do
    is_ethernet "$card" || continue
    has_link "$card" && link='with link' || link='no link'
    seen="$seen${seen:+, }${card##*/} $(cat "$card/address") $link"
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
    say 'digest proven'
    return 0
  fi
  rm -f "$image"
  wrong=$((wrong + 1))
  trouble="its digest is $got, and this boot system takes only $sum"
  say "wrong digest: $trouble"
  [ $wrong -lt $most_wrong ] || fail "$url: $trouble" \
    'the files of the server are not of one release: install kernel, initrd and squashfs together'
  return 1
}

# Size and date. An address that was given is asked for again, should it lead nowhere.
read_head() {
  if ! wget -S --spider -T 10 "$url" 2>/run/head; then
    trouble=$(tame </run/head)
    say "$url: $trouble"
    address=
    return 1
  fi
  size=$(awk 'tolower($1) == "content-length:" { n = $2 + 0 } END { print n + 0 }' /run/head)
  [ "$size" -gt 0 ] || size=$manifest_size
}

# What came before a break is kept.
transfer() {
  have=$(size_of "$image")
  if [ "$have" -lt "$size" ]; then
    (while sleep 5; do say "fetched $(mib "$(size_of "$image")") of $(mib "$size") MiB"; done) &
    teller=$!
    wget -q -c -T 20 -O "$image" "$url" 2>/dev/null
    kill $teller
    wait $teller 2>/dev/null
    have=$(size_of "$image")
  fi
  if [ "$have" -lt "$size" ]; then
    trouble="the transfer broke off at $(mib "$have") of $(mib "$size") MiB"
    say "$trouble"
    return 1
  fi
  got=$(sha256sum <"$image")
  got=${got%% *}
}

check_memory() {
  param flasher.margin && margin=$value
  need=$(($(mib $((size - $(size_of "$image")))) + margin))
  free=$(memory_of MemAvailable)
  [ "$free" -ge $need ] || fail "$free MiB of memory are free, and the live system needs $need" \
    'add memory (448 MiB are enough), or start from the USB stick, which needs less'
}

# Certificates need a clock that is about right. A server that is behind never sets it back.
set_clock() {
  told=$(sed -n 's/^ *[Dd][Aa][Tt][Ee]: *//p' /run/head | tail -n 1)
  told=$(date -u -D '%a, %d %b %Y %T' -d "$told" +%s 2>/dev/null) || return 0
  behind=$((told - $(date -u +%s)))
  [ $behind -gt 60 ] || return 0
  date -u -s "@$told" >/dev/null && say "clock set by the server: it was $behind seconds behind"
}
