/** All products that `pnpm build:images` builds. */
import type { Appliance } from './appliance.ts'
import { ipxeEfi } from './ipxe-efi.ts'
import { netbootPc } from './netboot-pc.ts'
import { usbPc } from './usb-pc.ts'

export const APPLIANCES: readonly Appliance[] = [netbootPc, ipxeEfi, usbPc]
