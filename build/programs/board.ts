/** Builds the stick for boards: `board.ts --kernel FILE --initrd FILE --squashfs FILE --tree DIR --packages DIR --version V --epoch S --level N --out FILE`. */
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile, mkdtemp, open, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { createGzip } from 'node:zlib'
import { makePlace } from '#build/app/lay.ts'
import {
  BOARD_FILES,
  PI_CONFIG,
  renderPiCommandLine,
  SIGNED_ARM64_CONFIG_PATH,
  UEFI_LOADERS,
} from '#build/board/firmware.ts'
import { planBoard } from '#build/board/layout.ts'
import { listPiFiles } from '#build/board/pi-files.ts'
import { digestFile } from '#build/cache/digest.ts'
import { MEDIA_SERIAL, renderImages } from '#build/exfat/images.ts'
import { SECTOR_BYTES } from '#build/gpt/table.ts'
import { BOARD_MENU, renderEarly, renderMark, renderMenu } from '#build/iso/grub.ts'
import { TEXT, requireOptions } from '#build/steps/program-options.ts'
import { copyInto } from '#build/volumes/copy.ts'
import { writeExt4Volume } from '#build/volumes/ext4.ts'
import { writeFatVolume } from '#build/volumes/fat.ts'

interface Job {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The tree of packages: the kernel's device trees lie in it. */
  readonly tree: string
  /** The files of Debian's boot packages, below one root. */
  readonly packages: string
  readonly version: string
  /** Seconds since 1970: the time of everything on the medium. */
  readonly epoch: number
  /** The level of gzip. */
  readonly level: number
  readonly out: string
}

async function makeBoard(job: Job): Promise<void> {
  const { squashfs, version, epoch, level, out } = job
  const scratch = await mkdtemp(`${out}.`)
  try {
    const media = `${version}-${(await digestFile(squashfs)).slice(0, 12)}`
    const { size } = await stat(squashfs)
    const layout = planBoard({ id: media, squashfsBytes: size })
    const volumes = {
      firmware: await makeFirmware(job, scratch, { media, ...layout.firmware }),
      live: await makeLive(job, scratch, { media, ...layout.live }),
    }
    const image = join(scratch, 'disk')
    await using disk = await open(image, 'w')
    await disk.truncate(layout.sectors * SECTOR_BYTES)
    for (const { sector, bytes } of layout.pieces) {
      await disk.write(bytes, 0, bytes.length, sector * SECTOR_BYTES)
    }
    await copyInto(disk, volumes.firmware, layout.firmware.first)
    await copyInto(disk, volumes.live, layout.live.first)
    for (const { offset, bytes } of renderImages({ version, epoch })) {
      await disk.write(bytes, 0, bytes.length, layout.images.first * SECTOR_BYTES + offset)
    }
    await pipeline(createReadStream(image), createGzip({ level }), createWriteStream(out))
  } finally {
    await rm(scratch, { recursive: true })
  }
}

interface Volume {
  readonly media: string
  readonly sectors: number
}

/** Returns the path of the volume. */
async function makeFirmware(job: Job, scratch: string, { media, sectors }: Volume) {
  const { kernel, initrd, packages, tree, version, epoch } = job
  const root = join(scratch, 'firmware')
  const files = {
    [BOARD_FILES.kernel]: kernel,
    [BOARD_FILES.initrd]: initrd,
    ...(await listPiFiles({ tree, packages })),
    ...Object.fromEntries(
      Object.entries(UEFI_LOADERS).map(([path, from]) => [path, join(packages, from)]),
    ),
  }
  const texts = {
    'config.txt': PI_CONFIG,
    'cmdline.txt': renderPiCommandLine(media),
    '.disk/info': `Flasher ${media}\n`,
    [renderMark(media)]: '',
    'boot/grub/grub.cfg': renderMenu({ version, media, asks: 'wizard', place: BOARD_MENU }),
    [SIGNED_ARM64_CONFIG_PATH]: renderEarly(media),
  }
  for (const [path, from] of Object.entries(files))
    await copyFile(from, await makePlace(root, path))
  for (const [path, text] of Object.entries(texts))
    await writeFile(await makePlace(root, path), text)
  const image = join(scratch, 'firmware.img')
  const volume = { sectors, label: 'FLASHER_FW', serial: MEDIA_SERIAL, clusterSectors: 1 }
  await writeFatVolume({ ...volume, root, image, epoch })
  return image
}

/** Returns the path of the volume. */
async function makeLive(job: Job, scratch: string, { media, sectors }: Volume) {
  const { squashfs, epoch } = job
  const root = join(scratch, 'live')
  await copyFile(squashfs, await makePlace(root, 'live/root.squashfs'))
  await writeFile(await makePlace(root, 'live/id'), `${media}\n`)
  for (const path of ['live/root.squashfs', 'live/id', 'live', '.']) {
    await utimes(join(root, path), epoch, epoch)
  }
  const image = join(scratch, 'live.img')
  await writeExt4Volume({ root, image, sectors, label: 'FLASHER_LIVE', id: media, epoch })
  return image
}

if (import.meta.main) {
  const { values: given } = parseArgs({
    options: {
      kernel: TEXT,
      initrd: TEXT,
      squashfs: TEXT,
      tree: TEXT,
      packages: TEXT,
      version: TEXT,
      epoch: TEXT,
      level: TEXT,
      out: TEXT,
    },
  })
  const values = requireOptions(given)
  const { epoch, level, out } = values
  await makeBoard({ ...values, epoch: Number(epoch), level: Number(level), out: resolve(out) })
}
