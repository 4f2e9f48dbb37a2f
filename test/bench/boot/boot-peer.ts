/** The initrd that we are compared with: dracut's live one, over the network, with the same kernel. */
import type { Step } from '#build/steps/step.ts'
import { SQUASHFS_ADDRESS } from '#test/support/vm/netboot.ts'

const PROGRAM = 'test/bench/boot/boot-peer-tree.ts'
const SCRIPT = 'test/bench/boot/boot-peer.sh'

/** Made like our images, and kept where they are kept. */
export const peerStep: Step = {
  name: 'bench-peer',
  says: "dracut's initrd for a live system over the network",
  inputs: [PROGRAM, SCRIPT, '@base/base', '@mkosi/root', '@tools/root'],
  makes: ['initrd'],
  argv: [
    'node',
    PROGRAM,
    '--base=@base/base',
    '--out=@bench-peer',
    '--mkosi=@mkosi/root',
    '--tools=@tools/root',
    '--cache=%mkosi',
    `--script=${SCRIPT}`,
  ],
}

/** For the kernel's command line: the squashfs into memory, an overlay of overlayfs over it. */
export const PEER_WORDS = [
  `root=live:${SQUASHFS_ADDRESS}`,
  'rd.live.image',
  'rd.live.overlay.overlayfs=1',
  'ip=dhcp',
  'rd.neednet=1',
] as const
