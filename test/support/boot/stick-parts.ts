/** The stick as files, made by its program from stand-ins of what it is made of. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { STICK_LOADERS } from '#build/stick/files.ts'
import { makeBytes } from '../collect.ts'

const CHECKOUT = join(import.meta.dirname, '../../..')
/** More than one piece of what the page copies at once. */
const SQUASHFS_BYTES = 9 * 2 ** 20 + 1

export interface StickBuild {
  /** The stick itself. */
  readonly folder: string
  readonly zip: string
  readonly page: string
}

/** Makes the three in `place`, which need not exist. */
export function buildStick(place: string, epoch = 1_760_000_000): StickBuild {
  const put = (path: string, content: string | Buffer = path) => {
    mkdirSync(dirname(join(place, path)), { recursive: true })
    writeFileSync(join(place, path), content)
  }
  for (const path of Object.values(STICK_LOADERS)) put(`packages/${path}`)
  for (const name of ['kernel', 'initrd']) put(name)
  put('squashfs', makeBytes(SQUASHFS_BYTES, 5))
  const out = join(place, 'out')
  mkdirSync(out, { recursive: true })
  const parts = ['kernel', 'initrd', 'squashfs', 'packages'].map(
    (name) => `--${name}=${join(place, name)}`,
  )
  const facts = ['--page=build/stick', '--version=1.2.3', `--epoch=${epoch}`, `--out=${out}`]
  const argv = ['build/programs/usb-files.ts', ...parts, ...facts]
  execFileSync(process.execPath, argv, { cwd: CHECKOUT, stdio: 'pipe' })
  return {
    folder: join(out, 'flasher-stick'),
    zip: join(out, 'flasher.zip'),
    page: join(out, 'flasher-stick.html'),
  }
}
