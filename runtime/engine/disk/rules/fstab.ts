/** Reads from an image's /etc/fstab whether a folder is on its root file system or on another volume. */
import { subvolumeOption } from './mount.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { FilledVolume } from './volume.ts'

interface FstabEntry {
  readonly spec: string
  readonly point: string
  readonly type: string
  readonly options: readonly string[]
}

export interface VolumeFolder {
  readonly volume: FilledVolume
  readonly subvolume: string | null
  /** Without a leading slash. */
  readonly folder: string
}

/** fstab(5); lines of another shape are skipped. */
export function parseFstab(text: string): readonly FstabEntry[] {
  return text.split('\n').flatMap((line) => {
    const [spec = '', point = '', type = '', options = ''] = line.trim().split(/\s+/)
    if (spec === '' || spec.startsWith('#') || !point.startsWith('/')) return []
    return {
      spec: unescape(spec.replaceAll('"', '')),
      point: unescape(point).replace(/\/+$/, '') || '/',
      type,
      options: options.split(','),
    }
  })
}

/**
 * `folder`: without a leading slash; null: the root. Refused with an entry that leads to nothing on
 * this disk.
 */
export function decideVolumeFolder(
  fstab: readonly FstabEntry[],
  folder: string,
  volumes: readonly FilledVolume[],
): Result<VolumeFolder | null, FstabEntry> {
  const entry = fstab
    .filter(({ point, options }) => point !== '/' && covers(point, folder) && isFirm(options))
    .reduce<FstabEntry | null>(
      (best, next) => (next.point.length >= (best?.point.length ?? 0) ? next : best),
      null,
    )
  if (entry === null) return accept(null)
  const volume = volumes.find((one) => isMeant(entry.spec, one))
  if (volume === undefined) return refuse(entry)
  return accept({
    volume,
    subvolume: findSubvolume(entry.options),
    folder: folder.slice(entry.point.length),
  })
}

const covers = (point: string, folder: string) => `/${folder}/`.startsWith(`${point}/`)

/** An entry that the boot may do without does not tell where a folder will be. */
const isFirm = (options: readonly string[]) =>
  !options.includes('noauto') && !options.includes('nofail')

function findSubvolume(options: readonly string[]): string | null {
  const path = options.find((option) => option.startsWith('subvol='))?.slice('subvol='.length)
  if (path !== undefined) return subvolumeOption(path)
  return options.find((option) => /^subvolid=\d{1,20}$/.test(option)) ?? null
}

type Fact = (volume: FilledVolume) => string | null
const ignoringCase = (text: string) => text.toLowerCase()
const exactly = (text: string) => text
const TAGS: Readonly<Record<string, readonly [Fact, (text: string) => string]>> = {
  UUID: [({ contents }) => contents.uuid, ignoringCase],
  LABEL: [({ contents }) => contents.label, exactly],
  PARTUUID: [({ contents }) => contents.partuuid, ignoringCase],
  PARTLABEL: [({ contents }) => contents.partlabel, exactly],
}

function isMeant(spec: string, volume: FilledVolume): boolean {
  const [, tag, value] = TAGGED.exec(spec) ?? LINKED.exec(spec) ?? []
  const known = TAGS[tag?.toUpperCase() ?? '']
  if (known !== undefined && value !== undefined) {
    const [fact, fold] = known
    return fold(fact(volume) ?? '') === fold(value)
  }
  return volume.kind === 'lvm' && (spec === volume.node || mapperNode(spec) === volume.node)
}

const TAGGED = /^([A-Z]+)=(.+)$/
const LINKED = /^\/dev\/disk\/by-([a-z]+)\/(.+)$/

/** device-mapper doubles hyphens within a name. */
function mapperNode(spec: string): string | null {
  const [, group, name] = /^\/dev\/([^/]+)\/([^/]+)$/.exec(spec) ?? []
  if (group === undefined || name === undefined) return null
  return `/dev/mapper/${group.replaceAll('-', '--')}-${name.replaceAll('-', '--')}`
}

/** fstab(5) writes blanks and tabs in octal. */
const unescape = (text: string) =>
  text.replaceAll(/\\([0-3][0-7]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  )
