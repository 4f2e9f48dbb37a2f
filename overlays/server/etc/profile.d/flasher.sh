# A first login on the console learns what to do.
# shellcheck shell=sh
if [ -f /var/lib/flasher-server/initialised ] && ! [ -s "$HOME/.ssh/authorized_keys" ]; then
  echo 'Set up line, password and SSH key with: sudo flasher-setup'
fi
