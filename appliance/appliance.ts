/** What describes a product: the builder and the tests read it. */

export const ARCHS = ['x86_64', 'arm64'] as const
export type Arch = (typeof ARCHS)[number]

/**
 * How it boots a machine: kernel, initrd and root over the network, a stick or disc, UEFI programs that
 * chain, or a disk that stays; `files` is usb as files to copy, `board` is usb for single-board computers; `deb` and `containers` boot nothing. `live`
 * and `live-usb` are netboot and usb of the earlier line.
 */
type Shape =
  | 'netboot'
  | 'usb'
  | 'files'
  | 'board'
  | 'ipxe'
  | 'secureboot'
  | 'server'
  | 'deb'
  | 'containers'
  | 'live'
  | 'live-usb'

export interface Appliance {
  /** The name in `pnpm build:images NAME`. */
  readonly name: string
  /** One line that describes it. */
  readonly says: string
  readonly shape: Shape
  readonly archs: readonly Arch[]
}
