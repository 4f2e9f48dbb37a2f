/** The boot loaders that firmware with Secure Boot starts from the network: Debian's own, unchanged. */
import type { Appliance } from './appliance.ts'

export const secureBootEfi: Appliance = {
  name: 'secureboot-efi',
  says: "Debian's signed shim and GRUB, and the configuration by which they ask the machine server",
  shape: 'secureboot',
  archs: ['x86_64', 'arm64'],
}
