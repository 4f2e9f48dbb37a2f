/** Builds an initrd from a root tree, in one process and without being root. */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs'
import { readdir, rename, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { constants, zstdCompressSync } from 'node:zlib'
import { ARCHS, type Arch } from '../../appliance/appliance.ts'
import { ROOT_MANIFEST } from '../../appliance/initrd.ts'
import { chooseFor, VARIANTS, type Variant } from '../initrd/choices.ts'
import { FIRMWARE_SUFFIXES, listFirmware } from '../initrd/firmware.ts'
import { planLayout } from '../initrd/layout.ts'
import { chooseModules } from '../initrd/modules.ts'
import { renderNewc, type Entry } from '../initrd/newc.ts'

interface Job {
  /** The root tree: busybox, modules and firmware come from it. */
  readonly tree: string
  /** Files of our own, each at its path in the initrd. */
  readonly overlay: string
  readonly variant: Variant
  readonly arch: Arch
  readonly version: string
  /** Seconds since 1970: the time of every file. */
  readonly epoch: number
  /** Of zstd. */
  readonly level: number
  /** The only root that the initrd accepts, and its name on a server. */
  readonly squashfs: string
  readonly name: string
  readonly out: string
}

const file = (name: string, bytes: Uint8Array | string, mode = 0o644): Entry => ({
  kind: 'file',
  name,
  mode,
  bytes: typeof bytes === 'string' ? Buffer.from(bytes) : bytes,
})

async function makeInitrd(job: Job): Promise<string> {
  const { tree, version, squashfs, name, out, epoch, level } = job
  const { entries, idle } = await gatherModules(job)
  const archive = renderNewc(
    planLayout([
      ...entries,
      ...(await gatherOverlay(job.overlay)),
      file('bin/busybox', readFileSync(join(tree, 'usr/bin/busybox')), 0o755),
      { kind: 'link', name: 'bin/sh', target: 'busybox' },
      file('etc/flasher-release', `${version}\n`),
      file('etc/passwd', 'root:x:0:0::/:/bin/sh\n'),
      file(ROOT_MANIFEST, `${await digestOf(squashfs)} ${statSync(squashfs).size} ${name}\n`),
    ]),
    epoch,
  )
  const params = { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_nbWorkers]: 2 }
  const packed = zstdCompressSync(archive, { params, pledgedSrcSize: archive.length })
  await writeFile(`${out}.part`, packed)
  await rename(`${out}.part`, out)
  const modules = entries.filter((entry) => entry.name.endsWith('.ko')).length
  const unused = idle.length === 0 ? '' : `; no module for ${idle.join(' ')}`
  return `${basename(out)}: ${mega(packed.length)} MB, ${mega(archive.length)} MB unpacked, ${modules} modules${unused}`
}

const mega = (bytes: number) => (bytes / 1e6).toFixed(1)

async function gatherModules({ tree, variant, arch }: Job) {
  const root = join(tree, 'usr/lib/modules')
  const [release = '', ...others] = await readdir(root)
  if (release === '' || others.length > 0) throw new Error(`${root} must hold one kernel's modules`)
  const folder = join(root, release)
  const table = (name: string) => {
    const path = join(folder, `modules.${name}`)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }
  const chosen = chooseModules(
    { dep: table('dep'), softdep: table('softdep'), alias: table('alias') },
    chooseFor(variant, arch),
  )
  const at = (name: string) => `lib/modules/${release}/${name}`
  const entries: Entry[] = [
    file(at('modules.dep'), chosen.tables.dep),
    file(at('modules.softdep'), chosen.tables.softdep),
    file(at('modules.alias'), chosen.tables.alias),
    file(at('modules.builtin'), table('builtin')),
    file(at('modules.symbols'), ''),
  ]
  const firmware = new Set<string>()
  for (const path of chosen.paths) {
    const bytes = readFileSync(join(folder, path))
    entries.push(file(at(path), bytes))
    for (const named of listFirmware(bytes)) firmware.add(named)
  }
  return { entries: [...entries, ...gatherFirmware(tree, firmware)], idle: chosen.idle }
}

/** Leaves out what the tree does not have: modules name more firmware than any package ships. */
function gatherFirmware(tree: string, names: ReadonlySet<string>): readonly Entry[] {
  return [...names].flatMap((name) => {
    const found = FIRMWARE_SUFFIXES.map((suffix) => `lib/firmware/${name}${suffix}`).find((path) =>
      existsSync(join(tree, 'usr', path)),
    )
    return found === undefined ? [] : [file(found, readFileSync(join(tree, 'usr', found)))]
  })
}

/** Files that begin with `#!` become executable. */
async function gatherOverlay(folder: string): Promise<readonly Entry[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  return found
    .filter((each) => each.isFile())
    .map((each) => {
      const path = join(each.parentPath, each.name)
      const bytes = readFileSync(path)
      return file(
        path.slice(folder.length + 1),
        bytes,
        bytes.toString('latin1', 0, 2) === '#!' ? 0o755 : 0o644,
      )
    })
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

if (import.meta.main) {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    options: {
      tree: text,
      overlay: text,
      variant: text,
      arch: text,
      version: text,
      epoch: text,
      level: text,
      squashfs: text,
      name: text,
      out: text,
    },
  })
  const required = (name: keyof typeof values): string => {
    const value = values[name]
    if (value === undefined) throw new Error(`--${name} is missing`)
    return value
  }
  const oneOf = <T extends string>(allowed: readonly T[], name: keyof typeof values): T => {
    const found = allowed.find((each) => each === required(name))
    if (found === undefined) throw new Error(`--${name} must be one of ${allowed.join(' ')}`)
    return found
  }
  const squashfs = required('squashfs')
  console.log(
    await makeInitrd({
      tree: required('tree'),
      overlay: required('overlay'),
      variant: oneOf(VARIANTS, 'variant'),
      arch: oneOf(ARCHS, 'arch'),
      version: required('version'),
      epoch: Number(required('epoch')),
      level: Number(values.level ?? 19),
      squashfs,
      name: values.name ?? basename(squashfs),
      out: required('out'),
    }),
  )
}
