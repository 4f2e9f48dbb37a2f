/** The live system for PCs that boot from the network: kernel, initrd and root. */
import type { Appliance } from './appliance.ts'

export const netbootPc: Appliance = {
  name: 'netboot-pc',
  says: 'kernel, initrd and root for PCs that boot from the network',
  shape: 'netboot',
  archs: ['x86_64'],
}
