/** The firmware program that asks the machine server what to boot. */
import type { Appliance } from './appliance.ts'

export const ipxeEfi: Appliance = {
  name: 'ipxe-efi',
  says: 'iPXE for UEFI that asks the machine server what to boot',
  shape: 'ipxe',
  archs: ['x86_64', 'arm64'],
}
