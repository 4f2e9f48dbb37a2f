/** Words with a digit that are names: of something in the repository, of a file of a release, of what all examples use. */
import { globSync, readFileSync } from 'node:fs'
import type { Arch } from '../../../appliance/appliance.ts'
import * as assets from '../../../appliance/assets.ts'
import { EXAMPLES } from './examples.ts'

const ARCHS: readonly Arch[] = ['x86_64', 'arm64']

/** How pages write the version in the name of a file. */
const VERSIONS = ['', '0.1.0', '1.2.3', 'VERSION']

const RELEASE_FILES = VERSIONS.flatMap((version) => [
  ...ARCHS.flatMap((arch) => [
    ...Object.values(assets.netbootTrio(arch, version)),
    ...Object.values(assets.secureBootFiles(arch, version)),
    ...Object.values(assets.serverUpdate(arch, version)),
    assets.netbootStem(arch, version),
    assets.usbIso(arch, version),
    assets.ipxeFile(arch, version),
    assets.serverImage(arch),
    assets.serverImage(arch).replace('.zst', ''),
    assets.containersFile(arch, version),
    assets.debFile(arch, version),
    // The braces of a page stand for endings, and the asterisk for the version.
    `flasher-server-${arch}-v${version}`,
    `flasher-ipxe-${arch}-v${version}`,
    `flasher-secureboot-${arch}-v${version}`,
  ]),
  ...assets.commonDebFiles(version),
  assets.boardImage(version),
  assets.documentsFile(version),
  assets.npmTarball(version),
  assets.aptArchive(version),
])

/** Where a word is cut into names: paths, assignments, queries, lists, calls. */
const CUTS = /:\/\/|[\s/=?&"'`,;{}()[\]<>|@$…!+\\^~]+|\\n/
const EDGES = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}%]+$/gu

/** What lies beside a file of a release. */
const BESIDE = /(\d.*)\.(?:sha256|sig)$/

const partsOf = (text: string): readonly string[] =>
  text
    .replaceAll('*', '')
    .split(CUTS)
    .map((part) => part.replaceAll(EDGES, '').replace(BESIDE, '$1').toLowerCase())
    .filter((part) => /\d/.test(part))

/** `30s`, `64g`, `1.5mb`, `40×12`: these say how much, whatever the code has like that. */
const isQuantity = (part: string) => /^[\d.,:%×-]+[a-zµ]{0,3}$/.test(part) || !/[a-z]/.test(part)

/** What names a part of the repository: its paths, and the words of what is shipped. */
const SOURCES = ['{appliance,build,mkosi.conf.d,overlays,runtime}/**', 'package.json']
const PATHS = ['test/**/*.ts', ...SOURCES]

function readWords(): ReadonlySet<string> {
  const files = SOURCES.flatMap((pattern) => globSync(pattern, { withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
  const texts = files.map((file) => readFileSync(file, 'utf8'))
  return new Set(
    [...texts, ...PATHS.flatMap((pattern) => globSync(pattern)), ...RELEASE_FILES]
      .flatMap(partsOf)
      .filter((part) => !isQuantity(part)),
  )
}

/** Accepted although another digit makes another name of them; that one is not. */
export const PREFERRED: ReadonlySet<string> = new Set(
  [
    'SHA-256 SHA256SUMS sha256 sha256sum UTF-8 UTF-16 x86-64 x86_64 amd64 arm64 ed25519 base64 base64url',
    'bzip2 bz2 qcow2 lz4 f2fs h3 S3 ext4 FAT32 IPv4 eth0 ttyS0 tty0 sdX1 vt220 EUI-64 64-bit',
    'debian-13.img.zst aa:bb:cc:dd:ee:01',
  ].flatMap((names) => names.toLowerCase().split(' ')),
)

/** Lines that show what is shipped, as it is shipped. */
const shipped: ReadonlySet<string> = new Set(
  globSync('overlays/**', { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => readFileSync(`${entry.parentPath}/${entry.name}`, 'utf8').split('\n'))
    .map((line) => line.trim())
    .filter((line) => /\d/.test(line) && line.length > 5),
)

/** Whether a line of a fenced block is one of a file that is shipped. */
export const isShipped = (line: string): boolean => shipped.has(line.trim())

const known: ReadonlySet<string> = new Set([
  ...readWords(),
  ...PREFERRED,
  ...EXAMPLES.flatMap(partsOf),
])

/** Whether one other digit makes another name of this one: a check of names cannot tell these apart. */
export const hasNeighbour = (name: string): boolean =>
  [...name.matchAll(/\d/g)].some(({ index }) =>
    [...'0123456789'].some(
      (digit) =>
        digit !== name[index] &&
        known.has(`${name.slice(0, index)}${digit}${name.slice(index + 1)}`),
    ),
  )

/** Examples whose parts say nothing by themselves: `10.1.0.0/24`. */
const whole: ReadonlySet<string> = new Set(EXAMPLES.flatMap((names) => names.split(' ')))

/** Whether each part of a word that has a digit is a name that is known, and that no wrong digit makes another name of. */
export function isName(word: string): boolean {
  if (whole.has(word)) return true
  const parts = partsOf(word)
  return (
    parts.length > 0 &&
    parts.every((part) => PREFERRED.has(part) || (known.has(part) && !hasNeighbour(part)))
  )
}
