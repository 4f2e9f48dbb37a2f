/** Decides from an image's own configuration whether cloud-init reads a seed in the root file system, and which file makes it do so. */
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** Files are merged in order of names: the later one counts. */
export const CONFIG_FOLDER = 'etc/cloud/cloud.cfg.d'
/** Settings of `ds-identify`, which decides whether cloud-init starts at all. */
export const IDENTIFY_FILE = 'etc/cloud/ds-identify.cfg'
/** cloud-init then trusts what it found at an earlier boot, and looks for no seed. */
export const TRUST_MARK = 'var/lib/cloud/instance/manual-clean'

export interface CloudConfig {
  /** `/etc/cloud/cloud.cfg` and its folder, in the order of merging; no leading slash. */
  readonly files: readonly { readonly path: string; readonly text: string }[]
  /** Empty: there is none. */
  readonly identify: string
  readonly hasTrustMark: boolean
}

interface OwnFile {
  readonly name: string
  readonly content: string
  readonly note: string
}

const CONTENT = `# Written by flasher with the seed in /var/lib/cloud/seed, so that cloud-init reads it.
datasource_list: [NoCloud, None]
datasource:
  NoCloud:
    fs_label: null
    seedfrom: null
manual_cache_clean: false
`
/** The second one comes behind all names in use. */
const NAMES = ['99-flasher.cfg', 'zzzz-flasher.cfg'] as const

/** cloud-init and ds-identify read this list. */
const SEED_FIRST = /^datasource_list:\s+\[\s*["']?NoCloud["']?\s*(,[^\]]*)?\]\s*$/
/** Each may have cloud-init read something else than the seed. */
const HIDING = ['fs_label', 'seedfrom', 'manual_cache_clean'] as const
/** With these the files are not merged in their order alone. */
const MERGING = /\b(merge_how|merge_type|conf_d)\b/

/** Null: cloud-init surely reads the seed. Refused where a file of ours would not help. */
export function decideOwnFile({
  files,
  identify,
  hasTrustMark,
}: CloudConfig): Result<OwnFile | null, string> {
  const others = files
    .filter(({ path }) => !NAMES.some((name) => path === `${CONFIG_FOLDER}/${name}`))
    .map(({ path, text }) => ({ path, text: dropComments(text) }))
  const text = others.map((file) => file.text).join('\n')
  const refusal = findRefusal(text, dropComments(identify), hasTrustMark)
  if (refusal !== null) return refuse(refusal)
  const listed = others.findLast((file) => file.text.includes('datasource_list'))
  const hiding = HIDING.flatMap((key) => {
    const found = others.findLast((file) => file.text.includes(key))
    return found === undefined ? [] : [`${key} in /${found.path}`]
  })
  const isHidden = listed !== undefined && !isSeedFirst(listed.text)
  const why = isHidden ? [`datasource_list in /${listed.path}`, ...hiding] : hiding
  if (why.length === 0) return accept(null)
  if (MERGING.test(text)) {
    return refuse(`cloud-init would not look for the seed (${render(why)})`)
  }
  const isLast = others.every(({ path }) => path < `${CONFIG_FOLDER}/${NAMES[0]}`)
  const name = NAMES[isLast ? 0 : 1]
  const note = `cloud-init would not have looked for the seed (${render(why)}); /${CONFIG_FOLDER}/${name} with datasource_list: [NoCloud, None] makes it do so`
  return accept({ name, content: CONTENT, note })
}

const render = (why: readonly string[]) => printable(why.join(', '))

function findRefusal(text: string, identify: string, hasTrustMark: boolean): string | null {
  const [, source = 'NoCloud'] = /^\s*datasource:\s*(\S+)/m.exec(identify) ?? []
  if (source !== 'NoCloud') {
    return `/${IDENTIFY_FILE} names the data source ${printable(source)}, so cloud-init looks for no seed`
  }
  if (/^\s*policy:\s*disabled/m.test(identify)) {
    return `the policy in /${IDENTIFY_FILE} switches cloud-init off, whatever the data source`
  }
  if (hasTrustMark) {
    return `/${TRUST_MARK} has cloud-init trust the data source of an earlier boot, so it looks for no seed`
  }
  return /["']?user-data["']?\s*:/.test(text) && /["']?meta-data["']?\s*:/.test(text)
    ? 'the configuration of the image has user-data of its own for the data source NoCloud, which counts before a seed'
    : null
}

const isSeedFirst = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.includes('datasource_list'))
    .every((line) => SEED_FIRST.test(line))

const dropComments = (text: string) => text.replaceAll(/(^|\s)#.*$/gm, '$1')
