/** The live system for arm64 machines that boot from the network: kernel, initrd and root. */
import type { Appliance } from './appliance.ts'

export const netbootArm64: Appliance = {
  name: 'netboot-arm64',
  says: 'kernel, initrd and root for arm64 machines that boot from the network',
  shape: 'netboot',
  archs: ['arm64'],
}
