/** Earlier line: `flasher capture` in the command table. */
import type { Command, Flag } from '#kit/terminal/command/rules/command.ts'

export const createCaptureCommand = (jsonFlag: Flag, levelFlag: Flag) =>
  ({
    words: ['capture'],
    summary: 'make an image of a disk',
    about: [
      'Reads a disk into a .img.zst of independent frames, as "flasher pack" writes them. The partition table, what lies before the first partition, and the used blocks of ext2, ext3, ext4, XFS, btrfs, FAT, exFAT, NTFS and swap are read (with partclone); free blocks become zeros. Everything else is read whole: other file systems, those that were not unmounted cleanly, LVM, RAID and encrypted volumes.',
      'The disk is opened read-only and exclusively. It is refused if it is mounted, in use, or holds the running system. The file gets its name when it is complete; a name that exists is refused.',
      'An image holds what makes the machine itself: SSH host keys, machine-id and the like. With --generalize these files are empty in the image (docs/capture.md lists them); the disk stays as it is. That works for ext4 only.',
    ],
    positionals: [],
    flags: [
      {
        name: 'source',
        value: { name: 'DISK', completes: 'disk' },
        required: true,
        help: 'disk to read, which nothing may use',
      },
      {
        name: 'output',
        value: { name: 'FILE', completes: 'file' },
        required: true,
        help: 'file to write, whose name ends in .img.zst, URL of flasher-cache to upload to, or oras://HOST/REPOSITORY[:TAG]',
      },
      levelFlag,
      {
        name: 'generalize',
        value: null,
        help: 'clear SSH host keys, machine-id and the like in the image, never on the disk',
      },
      {
        name: 'token',
        value: { name: 'TOKEN', completes: 'nothing' },
        help: 'one-time token for the upload, which others on this machine can see (default: FLASHER_UPLOAD_TOKEN, which they cannot)',
      },
      { name: 'dry-run', value: null, help: 'show what would be read but write nothing' },
      {
        name: 'yes',
        value: null,
        help: 'accepted as in "flash"; a capture changes no disk and asks nothing',
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
