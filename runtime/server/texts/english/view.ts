/** What several pages show: machines, disks, runs, events and the next boot. */

const IT_REPORTS = 'Nothing to do: it reports when it is done.'
const TRIES_AGAIN = 'Check its screen and network cable; a network boot tries again.'

export const VIEW = {
  /** `operator` is the administrator, who logs in without a name. */
  actors: {
    named: { operator: 'the operator', system: 'the server', 'pxe-client': 'the machine' },
    token: 'the token {name}',
    tokenOf: 'the token {name} of {person}',
  },
  columns: {
    state: 'State',
    name: 'Machine',
    next: 'Now and next',
    image: 'Image',
    disk: 'Disk',
    labels: 'Labels',
    ip: 'Address',
    arch: 'Architecture',
    flashed: 'Flashed',
    discovered: 'Discovered',
    seen: 'Seen',
  },
  row: {
    select: 'Select {name}',
    nextBoot: 'Next boot',
    never: 'never',
    locked: 'Locked against flashing',
    flashAlways: 'flash, at every network boot',
    flashOnce: 'flash once',
    discovered: 'discovered',
    goneImage: '{ref} (gone)',
    goneImageHint: 'Not in the catalog',
    drift: {
      'other-image': 'on disk: {image}',
      'changed-image': 'changed since the flash',
      'other-disk': 'last flashed: another disk',
    },
  },
  machineState: {
    flashing: { is: 'Being flashed.', next: IT_REPORTS },
    capturing: { is: 'Being captured.', next: IT_REPORTS },
    stalledCapture: { is: 'Stopped responding during a capture.', next: TRIES_AGAIN },
    stalled: { is: 'Stopped responding during a flash.', next: TRIES_AGAIN },
    failed: {
      is: 'The flash failed.',
      isWithReason: 'The flash failed: {reason}',
      startsDisk: 'Its next network boot starts its own disk. Choose Try again to flash it.',
      triesAgain: 'Its next network boot tries again.',
      inWizard: 'The wizard is open on its screen.',
    },
    /** Instead of a hint at flashing. */
    locked: 'It is locked: nothing flashes it until somebody unlocks it.',
    loopSuspected: 'Find out why, then flash it again or change what it does on network boot.',
    otherDisk: 'Select its disk. Until then it opens the wizard.',
    unassigned: {
      is: 'Discovered, nothing selected yet.',
      next: 'Select an image and a disk. Until then it boots its own disk.',
    },
    /** The place first: rows of a table show the beginning. */
    waiting: {
      is: 'Position {place} of {waiting} in the queue.',
      next: 'It is flashed when another machine is done; nothing to do.',
    },
    /** By the rule that chose its script. */
    running: {
      capture: { is: 'Started the live system.', next: IT_REPORTS },
      'disks-wanted': { is: 'Listing its disks.', next: IT_REPORTS },
      flash: { is: 'Started the live system.', next: IT_REPORTS },
      'flash-retry': {
        is: 'Started to flash and has not reported the end.',
        next: 'If it boots from the network again, it is flashed again.',
      },
    },
    /** By the rule that chose its script. */
    usual: {
      'ipxe-exit': {
        word: 'boots its disk',
        is: 'Boots its own disk.',
        next: 'Select Flash once to flash it.',
      },
      wizard: {
        word: 'opens the wizard',
        is: 'Opens the wizard.',
        next: 'The person in front of it chooses image and disk.',
      },
      'disks-wanted': {
        word: 'lists its disks',
        is: 'Disks not listed yet.',
        next: 'Its next network boot lists them, then it boots its own disk.',
      },
      'disks-stale': {
        word: 'lists its disks',
        is: 'The list of its disks is out of date.',
        next: 'Its next network boot lists them again, then it boots its own disk.',
      },
      'disks-known': {
        word: 'disks listed',
        is: 'Disks listed.',
        next: 'Select Flash once to flash it.',
      },
      capture: {
        is: 'A capture is ordered.',
        next: 'Its next network boot makes the image and uploads it.',
      },
      flash: { is: 'Ready to be flashed.', next: 'Its next network boot flashes it.' },
      'flash-retry': {
        is: 'Started to flash and has not reported the end.',
        next: 'Its next network boot flashes it again.',
      },
      flashed: {
        is: 'Flashed.',
        next: 'From now on it boots its disk. Choose Flash again to repeat.',
      },
      'disk-allowed': {
        word: 'boots its disk',
        is: 'Boots its own disk, as an operator chose after a flash whose end was never reported.',
        next: 'It is flashed again once somebody arms it.',
      },
      disarmed: {
        is: 'Not armed: an older state of the server was restored.',
        next: 'It is flashed once somebody arms it. Until then it boots its own disk.',
      },
      withdrawn: {
        is: 'Disarmed.',
        next: 'It is flashed once somebody arms it. Until then it boots its own disk.',
      },
      expired: {
        is: 'Its order to flash has expired.',
        next: 'It is flashed once somebody arms it. Until then it boots its own disk.',
      },
      paused: {
        is: 'Its batch is paused.',
        next: 'It boots its own disk until the batch goes on.',
      },
      'held-back': {
        is: 'A flash of it never reported its end, and its order was taken away since; the disk may be half written.',
        next: 'Its next network boot opens the wizard. Flash it again, or boot the disk anyway if you know that it is good.',
      },
      'disk-after-flash': {
        is: 'Flashed.',
        next: 'Its next network boot starts its disk; the one after that flashes it again.',
      },
      'loop-to-disk': {
        is: 'Started the live system too often without finishing; nothing was written.',
        next: 'It boots its own disk.',
      },
      'loop-to-person': {
        is: 'Its flash never finished; the disk may be half written.',
        next: 'Its next network boot opens the wizard.',
      },
      'no-live-system': {
        is: 'The server has no live system for this machine.',
        next: 'Fetch one on the Netboot page. Until then it boots its own disk.',
      },
      'half-written': {
        is: 'Waiting: its disk may be half written, because a flash never reported its end, and the server has no live system to flash it again.',
        next: 'Fetch one on the Netboot page, or boot the disk anyway if you know that it is good.',
      },
      queued: {
        is: 'Ready to be flashed.',
        next: 'Its next network boot waits for its turn, then flashes it.',
      },
      locked: {
        is: 'Locked, but set to be flashed.',
        next: 'Unlock it, or change what it does on network boot. Until then it boots its own disk.',
      },
      'no-image': {
        is: 'No image assigned.',
        next: 'Select one. Until then it boots its own disk.',
      },
      'unknown-image': {
        is: 'Its image is not in the catalog.',
        next: 'Select another, or download it in the cache. Until then it boots its own disk.',
      },
      'not-an-image': {
        is: 'Its image is not a disk image.',
        next: 'Select another. Until then it boots its own disk.',
      },
      'no-target': {
        is: 'No target disk selected.',
        next: 'Select one. Until then it boots its own disk.',
      },
    },
  },
  disk: {
    about: '{size}, {transport}',
    unknownSize: 'size unknown',
    unknownTransport: 'unknown transport',
    transports: {
      nvme: 'NVMe',
      sata: 'SATA',
      usb: 'USB',
      sas: 'SAS',
      mmc: 'eMMC or SD',
      virtio: 'virtio',
    },
    warnings: {
      noSerial: 'No serial number, so it cannot be identified safely.',
      readOnly: 'Read-only.',
      sharedSerial: '{count} disks of this machine have this serial number.',
      tooSmall: 'Too small for the image.',
      removable: 'Removable, perhaps a USB stick or memory card.',
    },
  },
  image: {
    about: '{checksum}, {size}',
    noChecksum: 'no checksum',
    unknownSize: 'size unknown',
  },
  /** A phrase for a row, a sentence for a page. */
  nextBoot: {
    flash: 'flash {image} to {disk}',
    capture: 'capture {disk} as {image}',
    bootDisk: 'boot its disk',
    wizard: 'open the wizard',
    listDisks: 'list its disks, then boot its disk',
    diskThenFlash: 'boot its disk once, then flash again',
    flashesAlways: 'At every network boot, this machine erases {disk} and flashes {image}.',
    flashesOnce:
      'At its next network boot, this machine erases {disk}, flashes {image} and then boots from it.',
    image: '{name} ({about})',
    disk: '{model} ({serial}, {about})',
    unlistedDisk: 'the disk {serial}',
    subjectImage: 'Image: {image}',
    subjectDisk: 'Disk to erase: {disk}',
    subjectUnknown: 'unknown',
    capturing: 'This machine is being captured as {image}.',
    capturingFrom: '{disk} of this machine is being captured as {image}.',
    flashing: 'This machine is flashing {image}.',
    flashingTo: 'This machine is flashing {image} to {disk}.',
  },
  run: {
    progress: '{phase} {percent}',
    stalled: '{progress}, not responding',
    timeLeft: '{time} left',
    /** Phases with other names than those of a flash. */
    capturePhases: { write: 'capturing' },
    phases: {
      started: 'starting',
      write: 'writing',
      verify: 'verifying',
      sync: 'flushing',
      uefi: 'adding boot entry',
      done: 'done',
      failed: 'failed',
      cancelled: 'cancelled',
    },
    states: {
      running: 'running',
      stalled: 'stalled',
      done: 'done',
      failed: 'failed',
      cancelled: 'cancelled',
      lost: 'lost',
    },
    proofs: {
      watching: 'waiting for its boot',
      booted: 'booted',
      seen: 'seen on the network',
      'not-seen': 'flashed, not seen',
      failed: 'failed to boot',
    },
    someDisk: 'a disk',
    unknownImage: 'unknown image',
    armerFrom: '{actor}, from {ip}',
    verifiedYes: 'yes',
    verifiedNo: 'no',
  },
  runTable: {
    caption: 'Runs, newest first',
    state: 'State',
    machine: 'Machine',
    image: 'Image',
    disk: 'Disk',
    duration: 'Duration',
    rate: 'Rate',
    verified: 'Verified',
    armer: 'Armed by',
    started: 'Started',
  },
  runList: {
    /** `{dim}` to `{end}` is shown less prominently. */
    imageToDisk: '{image} {dim}to {disk}{end}',
    imageFromDisk: '{image} {dim}from {disk}{end}',
    verified: 'verified',
  },
  eventList: {
    none: 'Nothing yet.',
    failed: 'Failed',
  },
} as const
