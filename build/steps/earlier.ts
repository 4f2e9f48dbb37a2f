/** The earlier line's media: the same live system, in files of its own names and on a stick with the terminal UI. */
import { LIVE_TRIO } from '../../appliance/assets.ts'
import { initrdStep } from './initrd.ts'
import { isoStep } from './iso.ts'
import type { BuildFacts, Step } from './step.ts'
import { zstdStep } from './zstd.ts'

interface EarlierOptions {
  readonly arch: 'x86_64'
  readonly facts: BuildFacts
  readonly tree: string
  readonly squashfs: string
  readonly kernel: string
  /** For media. */
  readonly initrd: string
}

export const earlierSteps = ({ initrd, ...root }: EarlierOptions): readonly Step[] => [
  initrdStep({ ...root, name: 'initrd-live', kind: 'netboot', squashfsName: LIVE_TRIO.squashfs }),
  isoStep({ ...root, initrd, name: 'live-usb', packages: '@boot-packages/root', asks: 'panes' }),
  zstdStep({
    name: 'live-usb-zst',
    says: 'the stick of the earlier line, compressed',
    from: '@live-usb/image.iso',
    makes: 'image.img.zst',
  }),
]
