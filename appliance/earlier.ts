/** The earlier line's media: the same live system under other names, on a stick with the terminal UI. */
import type { Appliance } from './appliance.ts'

export const earlierLive: Appliance = {
  name: 'earlier-live',
  says: 'earlier line: kernel, initrd and root for PCs that boot from the network',
  shape: 'live',
  archs: ['x86_64'],
}

export const earlierUsb: Appliance = {
  name: 'earlier-usb',
  says: 'earlier line: the live system on a stick, with the terminal UI',
  shape: 'live-usb',
  archs: ['x86_64'],
}
