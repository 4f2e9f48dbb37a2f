/** Earlier line: the command table ("Command line"); parser, help, completion and manual are generated from it. */
import {
  textFlag,
  type Command,
  type CommandLine,
  type Flag,
  type Value,
  COMMAND_ENVIRONMENT,
  createTextCommands,
} from '#kit/terminal/command/rules/command.ts'
import { DEFAULT_IMAGE_ROOT, IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { EXIT_CODES } from './exit-codes.ts'

/** Earlier line: `flasher capture` in the command table. */
const createCaptureCommand = (jsonFlag: Flag, levelFlag: Flag) =>
  ({
    words: ['capture'],
    summary: 'make an image of a disk',
    about: [
      'Reads a disk into a .img.zst of independent frames, as "flasher pack" writes them. Of ext2, ext3, ext4, XFS, btrfs, FAT, exFAT, NTFS and swap only the used blocks are read (with partclone); free blocks become zeros. The partition table and the space before the first partition are read, too. Everything else is read completely: other file systems, file systems that were not unmounted cleanly, LVM, RAID and encrypted volumes.',
      'The disk is opened read-only and exclusively. A disk that is mounted, in use, or holds the running system is refused. The file appears under its name when it is complete. An existing file is never overwritten.',
      'An image contains the identity of its machine: SSH host keys, machine-id and similar files. With --generalize these files are empty in the image (docs/capture.md lists them); the disk is not changed. This works with ext4 only.',
    ],
    positionals: [],
    flags: [
      {
        name: 'source',
        value: { name: 'DISK', completes: 'disk' },
        required: true,
        help: 'disk to read; it must not be in use',
      },
      {
        name: 'output',
        value: { name: 'FILE', completes: 'file' },
        required: true,
        help: 'file to write (its name ends in .img.zst), URL of a flasher-cache to upload to, or oras://HOST/REPOSITORY[:TAG]',
      },
      levelFlag,
      {
        name: 'generalize',
        value: null,
        help: 'clear SSH host keys, machine-id and similar files in the image, never on the disk',
      },
      {
        name: 'token',
        value: { name: 'TOKEN', completes: 'nothing' },
        help: 'one-time token for the upload; other users of this machine can see it (default: FLASHER_UPLOAD_TOKEN, which they cannot see)',
      },
      { name: 'dry-run', value: null, help: 'show what would be read but write nothing' },
      {
        name: 'yes',
        value: null,
        help: 'accepted as in "flash", but not needed: a capture never asks',
      },
      jsonFlag,
    ],
    examples: [
      {
        line: 'flasher capture --source /dev/sdb --output web.img.zst',
        does: 'make an image of a disk',
      },
      {
        line: 'flasher capture --source /dev/sda --output http://cache:8081/captures/web.img.zst',
        does: 'upload it to a cache; the token is in FLASHER_UPLOAD_TOKEN',
      },
      {
        line: 'flasher capture --source /dev/sda --output oras://registry.example/lab/web:v1',
        does: 'store it in a registry, as "flasher push" does',
      },
    ],
  }) as const satisfies Command

export const PROVISIONING_MODES = ['none', 'cloud-init', 'cijoe'] as const
const PROGRESS_MODES = ['text', 'ndjson', 'none'] as const

export const progressModeOf = ({
  values,
}: {
  readonly values: Readonly<Record<string, string>>
}): (typeof PROGRESS_MODES)[number] =>
  PROGRESS_MODES.find((mode) => mode === values['progress']) ?? 'text'

const FILE: Value = { name: 'PATH', completes: 'file' }
const JSON_FLAG: Flag = { name: 'json', value: null, help: 'print one JSON document on stdout' }

const BYTES_FLAG: Flag = { name: 'bytes', value: null, help: 'show sizes in bytes' }

const LIST_DISKS = {
  words: ['list', 'disks'],
  summary: 'list the disks of this machine',
  about: [
    'Shows whole disks with their path, size, transport, vendor, model and serial number, whether they are removable, and what uses them. Tell identical disks apart by their serial numbers.',
  ],
  positionals: [],
  flags: [BYTES_FLAG, JSON_FLAG],
  examples: [{ line: 'flasher list disks', does: 'see what can be written to' }],
} as const satisfies Command

const LIST_IMAGES = {
  words: ['list', 'images'],
  summary: 'list the images in the image folder',
  about: [
    'Shows the files in the folder, without subfolders, whose names end in a format that flasher writes. Files are not opened; "flasher inspect image" does that.',
  ],
  positionals: [],
  flags: [
    {
      name: 'image-root',
      value: { name: 'PATH', completes: 'folder' },
      help: `folder to look in (default: FLASHER_IMAGE_ROOT, else ${DEFAULT_IMAGE_ROOT})`,
    },
    BYTES_FLAG,
    JSON_FLAG,
  ],
  examples: [{ line: 'flasher list images --image-root ~/images', does: 'list another folder' }],
} as const satisfies Command

const INSPECT_IMAGE = {
  words: ['inspect', 'image'],
  summary: 'describe an image',
  about: ['Shows the path, format and size of an image, and details that its format records.'],
  positionals: [{ value: { name: 'PATH', completes: 'image' }, help: 'the image file' }],
  flags: [BYTES_FLAG, JSON_FLAG],
  examples: [
    { line: 'flasher inspect image debian.qcow2', does: 'show its virtual size and more' },
  ],
} as const satisfies Command

const SHA256: Value = {
  name: 'HEX',
  completes: 'nothing',
  shape: { pattern: /^[0-9a-f]{64}$/i, words: '64 hexadecimal digits' },
}

const FORMAT_FLAG = {
  name: 'format',
  value: { name: 'FORMAT', completes: 'choices', choices: IMAGE_FORMATS },
  help: 'format of the image, overriding its name',
} as const satisfies Flag
const LEVEL_FLAG = {
  name: 'level',
  value: {
    name: 'N',
    completes: 'nothing',
    default: '3',
    shape: { pattern: /^([1-9]|1[0-9]|2[0-2])$/, words: 'a number from 1 to 22' },
  },
  help: 'compression level of zstd, 1 to 22',
} as const satisfies Flag

const DIGEST_FLAG = {
  name: 'sha256',
  value: SHA256,
  help: 'expected digest of the image file (default: from IMAGE.sha256 if it exists)',
} as const satisfies Flag

const PACK = {
  words: ['pack'],
  summary: 'compress an image for random access',
  about: [
    'Writes the image as a .img.zst of independent frames of 4 MiB with an index. "zstd -d" unpacks it like any other. flasher decodes its frames on all cores, fetches no zeros, and with "flash --delta" fetches and writes only the blocks that differ from the disk.',
    'All formats that flasher writes can be packed. The file appears under its name when it is complete. An existing file is never overwritten.',
    'With --shrink the image fits smaller disks: its ext4 and NTFS file systems become as small as they go, plus a reserve, and partitions behind them move. This works on a copy in TMPDIR (default: /var/tmp), needs no root, and never changes the source. The file appears only when every name, content, owner, mode, time, link, attribute and stream was compared with the source. Partitions keep their numbers and identities. What keeps its size is named with the reason. "flasher flash --grow" grows the last partition again.',
  ],
  positionals: [{ value: { name: 'IMAGE', completes: 'image' }, help: 'image to pack' }],
  flags: [
    {
      name: 'output',
      value: { name: 'FILE', completes: 'file' },
      required: true,
      help: 'file to write; its name ends in .img.zst',
    },
    LEVEL_FLAG,
    FORMAT_FLAG,
    DIGEST_FLAG,
    {
      name: 'shrink',
      value: null,
      help: 'make its file systems as small as they go, so that it fits smaller disks',
    },
    {
      name: 'reserve',
      value: {
        name: 'PERCENT',
        completes: 'nothing',
        default: '10%',
        shape: { pattern: /^([0-9]{1,2}|[1-9][0-9]{2})%$/, words: 'a percentage from 0% to 999%' },
      },
      help: 'with --shrink: free space that is left, in percent of the least size',
    },
    JSON_FLAG,
  ],
  examples: [
    { line: 'flasher pack debian.qcow2 --output debian.img.zst', does: 'pack an image' },
    {
      line: 'flasher pack windows.qcow2 --shrink --reserve 20% --output windows.img.zst',
      does: 'pack an image for smaller disks',
    },
  ],
} as const satisfies Command

const PUSH = {
  words: ['push'],
  summary: 'store an image in an OCI registry',
  about: [
    'Packs the image as "flasher pack" does, unless it is packed already, and stores it in a registry. "flasher flash --image oras://…" and other tools read it from there. Until it is stored, the packed image is kept in TMPDIR (default: /var/tmp).',
    'The image is sent in chunks, and a broken upload resumes. Afterwards the digest, the size, and both ends of the stored image are verified. The tag changes last.',
    'Logins come from FLASHER_REGISTRY_HOST, FLASHER_REGISTRY_USER and FLASHER_REGISTRY_PASSWORD, or from the files of docker and podman.',
  ],
  positionals: [
    { value: { name: 'IMAGE', completes: 'image' }, help: 'image to store' },
    {
      value: { name: 'REFERENCE', completes: 'nothing' },
      help: 'oras://HOST/REPOSITORY[:TAG] (default tag: latest)',
    },
  ],
  flags: [
    textFlag('name', 'NAME', 'name of the image (default: its file name)'),
    textFlag('arch', 'ARCH', 'architecture that the image is for, such as x86_64 or arm64'),
    LEVEL_FLAG,
    FORMAT_FLAG,
    DIGEST_FLAG,
    JSON_FLAG,
  ],
  examples: [
    {
      line: 'flasher push debian.qcow2 oras://registry.example/lab/debian:13',
      does: 'pack an image and store it',
    },
    {
      line: 'flasher push debian.img.zst oras://registry.example/lab/debian:13 --arch arm64',
      does: 'store a packed image with its architecture',
    },
  ],
} as const satisfies Command

const FLASH_FLAGS = [
  {
    name: 'image',
    value: { name: 'IMAGE', completes: 'image' },
    required: true,
    help: 'image to write: a path, an http(s) URL, an oras reference, an object s3://BUCKET/KEY, or - for standard input',
  },
  {
    name: 'mirror',
    value: { name: 'IMAGE', completes: 'image' },
    repeatable: true,
    help: 'another address of the same packed image, to read frames from as well',
  },
  {
    name: 'target',
    value: { name: 'DISK', completes: 'disk' },
    required: true,
    repeatable: true,
    help: 'block device to overwrite; more than one is written at the same time',
  },
  { name: 'dry-run', value: null, help: 'check everything but write nothing; overrides --yes' },
  { name: 'yes', value: null, help: 'check everything, then write (needs root)' },
  { ...FORMAT_FLAG, help: `${FORMAT_FLAG.help}; required with --image -` },
  DIGEST_FLAG,
  {
    name: 'index-sha256',
    value: SHA256,
    help: 'expected digest of the index of a packed image; --sha256 then does not require reading all of it',
  },
  {
    name: 'delta',
    value: null,
    help: 'read the disk and write only what differs; requires a packed image',
  },
  { name: 'no-verify', value: null, help: 'do not verify what was written' },
  {
    name: 'verify-all',
    value: null,
    help: 'also verify ranges that the device zeroed itself',
  },
  { name: 'allow-partition', value: null, help: 'allow a partition as the target' },
  {
    name: 'fix-gpt',
    value: null,
    help: 'move the backup GPT to the end of a disk that is larger than the image',
  },
  {
    name: 'grow',
    value: null,
    help: 'grow the last partition and its file system (ext4, XFS, btrfs, NTFS) to the end of the disk; moves the backup GPT as --fix-gpt does',
  },
  {
    name: 'provision',
    value: {
      name: 'MODE',
      completes: 'choices',
      choices: PROVISIONING_MODES,
      default: 'none',
    },
    help: 'what to do with the disk after writing',
  },
  { name: 'user-data', value: FILE, help: 'cloud-init: user-data file (required)' },
  { name: 'meta-data', value: FILE, help: 'cloud-init: meta-data file (default: generated)' },
  { name: 'cijoe-workflow', value: FILE, help: 'cijoe: workflow to run (required)' },
  { name: 'cijoe-config', value: FILE, help: 'cijoe: configuration file' },
  {
    name: 'progress',
    value: { name: 'MODE', completes: 'choices', choices: PROGRESS_MODES, default: 'text' },
    help: 'events as text on stderr, as JSON lines on stdout, or not at all',
  },
  JSON_FLAG,
] as const satisfies readonly Flag[]

const FLASH = {
  words: ['flash'],
  summary: 'write an image to a disk',
  about: [
    'Checks the image, the disk and everything that provisioning needs. With --yes it then checks the disk once more, writes, verifies what was written, and loads the new partition table. With --dry-run it stops after the checks. One of the two is required.',
    'A disk is refused if it is mounted, in use, read-only or too small, or if it holds the running system. A flash that is cancelled or fails leaves the disk without a partition table, so that no half-written system can boot.',
    'With --progress ndjson only events go to stdout, one JSON object per line; with --json as well, the document is the last line. Event names: started, writing, synced, partprobed, provisioning, done, failed.',
  ],
  positionals: [],
  flags: FLASH_FLAGS,
  examples: [
    {
      line: 'flasher flash --image debian.img.zst --target /dev/sdb --dry-run',
      does: 'check whether it would work',
    },
    {
      line: 'flasher flash --image https://example.org/debian.img.xz --target /dev/sdb --yes',
      does: 'write directly from a server',
    },
    {
      line: 'flasher flash --image debian.qcow2 --target /dev/sdb --provision cloud-init --user-data user-data --yes',
      does: 'write, then add a cloud-init seed',
    },
    {
      line: 'zcat disk.gz | flasher flash --image - --format img --target /dev/sdb --yes',
      does: 'write the output of another program',
    },
  ],
} as const satisfies Command

const VERIFY = {
  words: ['verify'],
  summary: 'compare a disk with an image',
  about: [
    'Compares every byte of the image with the disk and counts by partition what differs. The disk is opened read-only and exclusively; one that is mounted or in use is refused. What lies behind the image is not compared.',
    'A system that was started from the disk has changed it, and so have --grow, --fix-gpt and --provision. This is counted as well. Where something differs, the exit code is 1, and the document has differing_bytes.',
  ],
  positionals: [{ value: { name: 'DISK', completes: 'disk' }, help: 'whole disk to read' }],
  flags: [
    {
      name: 'image',
      value: { name: 'IMAGE', completes: 'image' },
      required: true,
      help: 'image to compare with: whatever "flash --image" takes',
    },
    FORMAT_FLAG,
    DIGEST_FLAG,
    JSON_FLAG,
  ],
  examples: [
    {
      line: 'flasher verify /dev/sdb --image debian.img.zst',
      does: 'see whether a disk still holds what was written',
    },
  ],
} as const satisfies Command

const TEXTS = createTextCommands('flasher', [JSON_FLAG])

export const COMMANDS = [
  LIST_DISKS,
  LIST_IMAGES,
  INSPECT_IMAGE,
  PACK,
  PUSH,
  createCaptureCommand(JSON_FLAG, LEVEL_FLAG),
  FLASH,
  VERIFY,
  TEXTS.completion,
  TEXTS.manual,
] as const satisfies readonly Command[]

type Joined<Words extends readonly string[]> = Words extends readonly [
  infer First extends string,
  ...infer Rest extends readonly string[],
]
  ? Rest extends readonly []
    ? First
    : `${First}-${Joined<Rest>}`
  : never

export type FlasherCommand = Joined<(typeof COMMANDS)[number]['words']>

export const COMMAND_LINE: CommandLine = {
  program: 'flasher',
  summary: 'write operating-system images to disks and verify them',
  about: [
    `Formats: ${IMAGE_FORMATS.toReversed()
      .map((format) => `.${format}`)
      .join(', ')}.`,
    'With --json, every command prints one document whose first keys are schema_version and command; after a failure it holds an error with code, message and hint.',
  ],
  commands: COMMANDS,
  exitCodes: EXIT_CODES,
  environment: COMMAND_ENVIRONMENT,
  files: [
    [DEFAULT_IMAGE_ROOT, 'images that "flasher list images" shows'],
    ['IMAGE.sha256', 'SHA-256 of the image beside it, as written by sha256sum'],
  ],
  revised: '2026-11-29',
}
