/** Collects the drivers, programs and scripts of an initrd from a root tree into one archive. */
import { existsSync, readFileSync } from 'node:fs'
import { readdir, rename, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { ARCHS, type Arch } from '#appliance/appliance.ts'
import { chooseFor, VARIANTS, type Variant } from '#build/initrd/choices.ts'
import { FIRMWARE_SUFFIXES, listFirmware } from '#build/initrd/firmware.ts'
import { planLayout } from '#build/initrd/layout.ts'
import { chooseModules } from '#build/initrd/modules.ts'
import { fileEntry, renderNewc, type Entry } from '#build/initrd/newc.ts'

interface Job {
  /** The root tree: busybox, modules and firmware come from it. */
  readonly tree: string
  /** Files of our own, each at its path in the initrd. */
  readonly overlay: string
  readonly variant: Variant
  readonly arch: Arch
  /** Seconds since 1970: the time of every file. */
  readonly epoch: number
  readonly out: string
}

async function makeArchive(job: Job): Promise<string> {
  const { tree, out, epoch } = job
  const { entries, idle } = await gatherModules(job)
  const archive = renderNewc(
    planLayout([
      ...entries,
      ...(await gatherOverlay(job.overlay)),
      fileEntry('bin/busybox', readFileSync(join(tree, 'usr/bin/busybox')), 0o755),
      { kind: 'link', name: 'bin/sh', target: 'busybox' },
      fileEntry('etc/passwd', 'root:x:0:0::/:/bin/sh\n'),
    ]),
    epoch,
  )
  await writeFile(`${out}.part`, archive)
  await rename(`${out}.part`, out)
  const modules = entries.filter((entry) => entry.name.endsWith('.ko')).length
  const unused = idle.length === 0 ? '' : `; no module for ${idle.join(' ')}`
  return `${basename(out)}: ${(archive.length / 1e6).toFixed(1)} MB, ${modules} modules${unused}`
}

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
    fileEntry(at('modules.dep'), chosen.tables.dep),
    fileEntry(at('modules.softdep'), chosen.tables.softdep),
    fileEntry(at('modules.alias'), chosen.tables.alias),
    fileEntry(at('modules.builtin'), table('builtin')),
    fileEntry(at('modules.symbols'), ''),
  ]
  const firmware = new Set<string>()
  for (const path of chosen.paths) {
    const bytes = readFileSync(join(folder, path))
    entries.push(fileEntry(at(path), bytes))
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
    return found === undefined ? [] : [fileEntry(found, readFileSync(join(tree, 'usr', found)))]
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
      return fileEntry(
        path.slice(folder.length + 1),
        bytes,
        bytes.toString('latin1', 0, 2) === '#!' ? 0o755 : 0o644,
      )
    })
}

if (import.meta.main) {
  const text = { type: 'string', default: '' } as const
  const { values } = parseArgs({
    options: { tree: text, overlay: text, variant: text, arch: text, epoch: text, out: text },
  })
  console.log(
    await makeArchive({
      ...values,
      variant: oneOf('variant', VARIANTS, values.variant),
      arch: oneOf('arch', ARCHS, values.arch),
      epoch: Number(values.epoch),
    }),
  )
}

function oneOf<T extends string>(name: string, allowed: readonly T[], given: string): T {
  const found = allowed.find((each) => each === given)
  if (found === undefined) throw new Error(`--${name} must be one of ${allowed.join(' ')}`)
  return found
}
