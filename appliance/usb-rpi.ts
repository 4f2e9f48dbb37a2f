/** The live system for Raspberry Pi 4 and 5, and for arm64 machines with UEFI, on a stick or card. */
import type { Appliance } from './appliance.ts'

export const usbRpi: Appliance = {
  name: 'usb-rpi',
  says: 'the live system on a stick or card for Raspberry Pi and for UEFI on arm64',
  shape: 'board',
  archs: ['arm64'],
}
