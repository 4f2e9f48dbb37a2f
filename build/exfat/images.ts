/** The images partition of a new medium: a volume that can grow, with a README. */
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import { renderReadme } from '#build/iso/readme.ts'
import { renderVolume } from './volume.ts'

/** 32 MiB (Release artifacts), 9 of which are the tables of a volume that can grow: it fills the stick at the first start. */
export const IMAGES_SECTORS = 65_536
/** The serial number of FAT and exFAT volumes on our media; fixed, so that builds are reproducible. */
export const MEDIA_SERIAL = 0x464c4153

interface ImagesOptions {
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
}

/** Renders the partition as pieces of bytes with their offsets. */
export const renderImages = ({ version, epoch }: ImagesOptions) =>
  renderVolume({
    sectors: IMAGES_SECTORS,
    label: IMAGES_PARTITION.label,
    serial: MEDIA_SERIAL,
    time: new Date(epoch * 1000),
    files: [{ name: 'README.txt', content: Buffer.from(renderReadme(version)) }],
  })
