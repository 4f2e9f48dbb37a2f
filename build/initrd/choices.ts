/** The drivers in each initrd: those that reaching the root file system requires, and no more. */
import type { Arch } from '#appliance/appliance.ts'
import type { ModuleChoice } from './modules.ts'

export const VARIANTS = ['netboot', 'media', 'slot'] as const
/** `netboot` fetches the root over the network; `media` finds it on a stick, on a disc, or in an ISO file on one; `slot` in a partition. */
export type Variant = (typeof VARIANTS)[number]

/** In all variants: buses, keyboards, and what mounting the root requires. */
const BASE = [
  'drivers/virtio/*',
  'drivers/hv/*',
  'drivers/pci/controller/*',
  'drivers/usb/common/*',
  'drivers/usb/core/*',
  'drivers/usb/dwc*',
  'drivers/usb/host/*',
  'drivers/usb/roles/*',
  'drivers/hid/hid.ko',
  'drivers/hid/hid-generic.ko',
  'drivers/hid/usbhid/*',
  'drivers/input/serio/*',
  'drivers/block/loop.ko',
  'drivers/char/hw_random/virtio*',
  'fs/overlayfs/*',
  'fs/squashfs/*',
]

const NETWORK = [
  'drivers/net/ethernet/*',
  'drivers/net/hyperv/*',
  'drivers/net/mdio/*',
  'drivers/net/mii.ko',
  'drivers/net/pcs/*',
  'drivers/net/phy/*',
  'drivers/net/usb/*',
  'drivers/net/virtio_net.ko',
  'drivers/net/vmxnet3/*',
  'drivers/net/xen-netfront.ko',
  'drivers/dca/*',
]

const MEDIA = [
  'drivers/ata/ahci.ko',
  'drivers/ata/ata_generic.ko',
  'drivers/ata/ata_piix.ko',
  'drivers/block/virtio_blk.ko',
  'drivers/block/xen-blkfront.ko',
  'drivers/cdrom/*',
  'drivers/mmc/*',
  'drivers/nvme/host/*',
  'drivers/scsi/hv_storvsc.ko',
  'drivers/scsi/sd_mod.ko',
  'drivers/scsi/sr_mod.ko',
  'drivers/scsi/virtio_scsi.ko',
  'drivers/scsi/vmw_pvscsi.ko',
  'drivers/thunderbolt/*',
  'drivers/usb/storage/*',
  'drivers/usb/typec/*',
  'fs/exfat/*',
  'fs/ext4/*',
  'fs/fat/*',
  'fs/isofs/*',
  'fs/nls/nls_ascii.ko',
  'fs/nls/nls_cp437.ko',
  'fs/nls/nls_iso8859-1.ko',
  'fs/nls/nls_utf8.ko',
  'fs/ntfs*',
]

/** Even the clock of a network card needs a driver on arm64 boards. */
const BOARD = [
  'bus clk dma firmware gpio i2c/busses iommu irqchip mailbox mfd misc/rp1 nvmem phy pinctrl',
  'pmdomain power/reset regulator reset soc tty/serial usb/dwc2',
].flatMap((line) => line.split(' ').map((folder) => `drivers/${folder}/*`))

/** Left out: large drivers of storage and telecom adapters, and of cards too old to matter. */
const LEAVE = [
  '3com 8390 brocade cavium chelsio fungible hisilicon huawei marvell/octeon* marvell/prestera',
  'mellanox/mlxsw meta myricom natsemi netronome pensando qlogic/netxen qlogic/qed qlogic/qede',
  'sfc sis smsc',
].flatMap((line) => line.split(' ').map((folder) => `drivers/net/ethernet/${folder}/*`))

/** Returns the patterns of the drivers for a variant on a processor. */
export const chooseFor = (variant: Variant, arch: Arch): ModuleChoice => ({
  take: [
    ...BASE,
    ...(variant === 'slot' ? [] : NETWORK),
    ...(variant === 'netboot' ? [] : MEDIA),
    ...(arch === 'arm64' ? BOARD : []),
  ],
  leave: LEAVE,
})
