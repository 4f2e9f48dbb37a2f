/** The screens on which a disk is captured, in English. */

export const CAPTURE = {
  capture: {
    choice: 'make one',
    choiceFrom: 'captured from a disk of this machine',
    key: 'capture',
    disk: {
      question: 'Which disk? It is only read.',
      tooLarge: 'larger than an image can be: 4 TiB',
      none: 'No disks detected.',
    },
    destination: {
      prompt: 'Image',
      question: 'Where does the image go? Enter alone takes this name:',
      others: 'Or type one of these:',
      kinds: {
        name: 'a name',
        path: 'a path',
        address: 'an address',
      },
      nameIn: '{name}, in {folder}',
      addressOf: '{address} (an image cache)',
    },
    token: {
      prompt: 'Token',
      question: 'The image cache takes the image with a one-time token.',
      where: '"flasher-cache token {name}" makes one, where the cache runs.',
      fromEnvironment: 'Enter alone: the one in FLASHER_UPLOAD_TOKEN.',
    },
    confirm: {
      prompt: 'Capture',
      looking: 'looking at what is on the disk ...',
      readOnly: '{disk} is opened read-only: nothing on it changes.',
      amount: '{used} of {size} will be read. Compression makes the image smaller.',
      columns: { part: 'Partition', size: 'Size', type: 'Type', read: 'Read' },
      wholeDisk: 'no table',
      unknown: 'unknown',
      used: 'used blocks: {size}',
      whole: 'all of it: {reason}',
      more: { one: 'and {count} more', other: 'and {count} more' },
      found: 'The identity of this machine would be in the image: {files}. g clears it there.',
      possible:
        'The identity of this machine may be in the image: SSH host keys, machine-id, random seed, leases.',
      cleared: 'Cleared in the image, not on the disk: {files}.',
      nothingToClear: 'Nothing was found that identifies this machine.',
    },
    keys: {
      capture: 'CAPTURE',
      clear: 'clear identity',
      keep: 'keep identity',
    },
    files: {
      machineId: 'machine-id',
      sshKeys: 'SSH host keys',
      seed: 'random seed',
      leases: 'network leases and keys',
    },
    run: {
      reading: 'reading the disk',
      verifying: 'the image cache verifies the image ...',
      cancelling: 'cancelling ...',
      stored: '{size} of the image made, {time} so far',
      cancel: 'Ctrl-C cancels, and nothing is left of the image. ? shows help.',
    },
    outcome: {
      done: 'Done. Captured {disk} in {time}.',
      labels: { image: 'Image', size: 'Size', sha256: 'SHA-256' },
      size: '{stored}, {unpacked} unpacked',
      waiting:
        'Machines can have the image after an operator has accepted it on the page Images of the cache.',
      found:
        'The identity of this machine is in the image: {files}. Machines that are flashed with it share it.',
      cancelled: 'Cancelled.',
      failed: 'The capture failed: {reason}',
      leaves: 'Nothing is left of the image; the disk is as it was.',
      uploadLeaves: 'The disk is as it was. What the cache has received is removed after a day.',
      choices: {
        again: 'another disk',
        retry: 'try again',
      },
    },
    help: {
      asks: {
        'capture-disk':
          'Choose the disk that an image is made of. It is only read. A row that begins with - cannot be chosen; the reason is in brackets: a disk is captured while nothing uses it.',
        'capture-destination':
          'Type where the image goes: a name for the image folder, a path of a file or folder, or the address of an image cache. Its name ends in .img.zst, which is added where it is missing.',
        'capture-token':
          'Type the one-time token with which the image cache takes the image. It is not shown.',
        'capture-confirm':
          'Check the disk, where the image goes, and what is read. Nothing has been written yet: only y starts the capture.',
        'capture-failed':
          'The capture failed or was cancelled; the screen says why. Choose what to do next.',
        'capture-done': 'The image is complete. Choose what to do next.',
      },
      runs: 'The disk is being read, and its image made. Nothing is asked. Nothing is left of an image that is cancelled.',
      cancel: 'cancels the capture',
      letters: {
        g: 'clear the files that identify this machine in the image, or keep them',
        y: 'make the image, at once',
      },
    },
  },
} as const
