/** A bootable Debian with the real cloud-init, as a raw disk image that nobody has booted yet. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDebianDisk } from '../disk/debian-disk.ts'
import { makeDebianTree, readCodename } from '../disk/debian-tree.ts'
import { openTestCache } from '../server/test-cache.ts'

const SIZE_BYTES = 900 * 2 ** 20

/** `passwd` and `sudo` for the users that cloud-init makes, `openssh-client` for `ssh-keygen`, `iproute2` for its network. */
const PACKAGES = ['cloud-init', 'iproute2', 'openssh-client', 'passwd', 'sudo']
const MODULES = ['virtio_net', 'net_failover']

const FILES: Readonly<Record<string, string>> = {
  // Its first boot is the first: cloud-init and systemd see a machine that has no identity.
  'etc/hostname': 'localhost\n',
  // Images for machines outside of a cloud have this; other data sources are tried as well, slowly.
  'etc/cloud/cloud.cfg.d/99-flasher-test.cfg': 'datasource_list: [NoCloud, None]\n',
  // What cloud-init writes for the network is read by networkd, which Debian does not start by itself.
  'etc/systemd/system/sysinit.target.d/flasher-test.conf':
    '[Unit]\nWants=systemd-networkd.service\n',
  'etc/systemd/network/99-flasher-test.network': '[Match]\nType=ether\n[Network]\nDHCP=ipv4\n',
}

/** One try for all tests of a run: what fails once fails again, after as long. */
let opened: Promise<string> | undefined

/**
 * The path of the image, never to be written to: GPT, its root the third partition (ext4), a BIOS and
 * UEFI boot it. Without a seed its host name stays `localhost`. Needs what the Debian image needs
 * (`findImageObstacle`); some 90 seconds at the first call of a week, else at once.
 */
export const openCloudImage = (): Promise<string> => (opened ??= openImage())

async function openImage(): Promise<string> {
  const recipe = ['disk/debian-disk.ts', 'disk/debian-tree.ts', 'vm/cloud-image.ts']
  const cache = await openTestCache('cloud', {
    recipe: recipe.map((name) => join(import.meta.dirname, '..', name)),
    also: [await readCodename()],
  })
  const name = 'cloud.img'
  return join(await cache.keep([name], makeImage), name)
}

async function makeImage(folder: string) {
  const tree = join(folder, 'tree')
  await makeDebianTree(tree, { packages: PACKAGES, modules: MODULES, files: FILES })
  const workspace = join(folder, 'workspace')
  await makeDebianDisk(tree, join(folder, 'cloud.img'), { sizeBytes: SIZE_BYTES, workspace })
  await rm(tree, { recursive: true })
}

if (import.meta.main) console.log(await openCloudImage())
