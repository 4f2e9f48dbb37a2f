/** What a product of ours is: the facts by which the builder makes it and tests ask for it. */

export const ARCHS = ['x86_64', 'arm64'] as const
export type Arch = (typeof ARCHS)[number]

/** How it starts a machine: kernel, initrd and root by the network; a stick or disc; a firmware program that chains. */
type Shape = 'netboot' | 'usb' | 'ipxe'

export interface Appliance {
  /** What `pnpm build:images NAME` takes. */
  readonly name: string
  /** One line for lists. */
  readonly says: string
  readonly shape: Shape
  readonly archs: readonly Arch[]
}
