/** The live system for PCs on a stick or a disc, with a partition for images. */
import type { Appliance } from './appliance.ts'

export const usbPc: Appliance = {
  name: 'usb-pc',
  says: 'the live system on a stick or disc for PCs, with a partition for images',
  shape: 'usb',
  archs: ['x86_64'],
}
