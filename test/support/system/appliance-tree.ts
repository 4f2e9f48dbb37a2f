/** The files of the server appliance over those of this host, in a mount namespace of their own: `flasher-setup` runs there as it would on the appliance. */
import { fileURLToPath } from 'node:url'

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * `$1` is an empty folder, `$2` this checkout, `$3` Node; the rest is run. Services are not started: what systemctl is
 * asked for stands in /run/systemctl.
 */
const SCRIPT = String.raw`
set -eu
umask 022
folder=$1 checkout=$2 node=$3
shift 3
mount -t tmpfs tmpfs "$folder"
chmod 755 "$folder"
# Others than its owner need not be able to look into the checkout's own folder.
mkdir "$folder/checkout"
touch "$folder/node" "$folder/checkout/package.json"
for part in package.json appliance node_modules overlays runtime; do
  [ ! -d "$checkout/$part" ] || mkdir "$folder/checkout/$part"
  mount --bind "$checkout/$part" "$folder/checkout/$part"
done
mount --bind "$node" "$folder/node"
for tree in usr etc var; do
  mkdir "$folder/$tree" "$folder/$tree.work"
  mount -t overlay overlay -o "lowerdir=/$tree,upperdir=$folder/$tree,workdir=$folder/$tree.work" "/$tree"
done
mount -t tmpfs tmpfs /run
mkdir /run/issue.d
cp -r "$folder"/checkout/overlays/server/usr/. "$folder"/checkout/overlays/service/usr/. /usr/
rm -f /etc/nginx/sites-enabled/default
printf '#!/bin/sh\necho "$*" >>/run/systemctl\n' >/usr/bin/systemctl.new
printf '#!/bin/sh\nexec %s %s "$@"\n' "$folder/node" "$folder/checkout/runtime/bin/flasher-web.ts" >/usr/bin/flasher-web.new
for program in systemctl flasher-web; do
  chmod 755 "/usr/bin/$program.new"
  mv "/usr/bin/$program.new" "/usr/bin/$program"
done
for user in flasher admin; do id "$user" >/dev/null 2>&1 || useradd --system --user-group --no-create-home "$user"; done
mkdir -p /etc/flasher /var/lib/flasher-server
: >/etc/flasher/flasher.env
install -d -m 700 -o flasher -g flasher /var/lib/flasher
# As a console of the appliance has it.
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux LANG=C.UTF-8 "$@"
`

/** A command, with its words, as it runs on the appliance. `folder`: empty, and still there afterwards. */
export const onAppliance = (folder: string, command: readonly string[]): readonly string[] =>
  ['unshare', '--mount', 'sh', '-c', SCRIPT, 'sh', folder, CHECKOUT, process.execPath].concat(
    command,
  )
