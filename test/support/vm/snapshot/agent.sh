# Inside the live system: runs the host's scripts, which come over the second serial line. The questions and
# answers are those of the guest's agent (../guest-agent.sh).
stty raw -echo
mkdir -p /run/agent

answer() {
  local id=$1 code=0 work=/run/agent/$1
  mkdir -p "$work"
  base64 -d <<<"$2" >"$work/script"
  bash "$work/script" >"$work/out" 2>"$work/err" </dev/null || code=$?
  {
    flock 9
    printf '%s %s %s %s\n' "$id" "$code" "$(base64 -w0 "$work/out")" "$(base64 -w0 "$work/err")" >/dev/ttyS1
  } 9>/run/agent/lock
  rm -rf "$work"
}

echo 'flasher-agent: ready' >/dev/ttyS0
while read -r id script; do
  answer "$id" "$script" &
done
