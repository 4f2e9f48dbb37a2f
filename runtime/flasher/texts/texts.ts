/** The wizard's texts in the language that is in use; another language is one more file, named here. */
import type { Translated } from '#kit/texts/text.ts'

/** The screens from the catalog to the end of a flash, in English. */
const FLASH = {
  source: {
    prompt: 'Catalog',
    question: 'Where do the images come from?',
    columns: { catalog: 'Catalog', images: 'Images' },
    choices: {
      default: 'default',
      custom: 'custom',
      local: 'local only',
      quit: 'quit',
    },
    noDefault: 'none is set; FLASHER_DEFAULT_CATALOG names one',
    customFrom: 'from a file, an http(s) URL or a registry',
    localFrom: 'those in {folder}',
    locationPrompt: 'Location',
    location: 'Where is the catalog? It may be:',
    examples: {
      file: 'a TOML file',
      address: 'an address',
      registry: 'an image in a registry',
    },
    now: 'Now it is: {source}',
    nowNone: 'none, local images only',
    none: 'Enter alone: no catalog.',
  },
  image: {
    prompt: 'Image',
    columns: {
      name: 'Name',
      size: 'Size',
      format: 'Format',
      arch: 'Arch',
      from: 'From',
      sha256: 'SHA-256',
    },
    from: { local: 'local', remote: 'remote' },
    fileEmpty: 'the file is empty',
    loading: 'loading catalog from {source} ...',
    loadFailed: 'catalog load failed: {reason}',
    leftOut: 'left out: {flaw}',
    moreLeftOut: { one: 'and {count} more left out', other: 'and {count} more left out' },
    noneHere: 'There are no images here yet.',
    noneAnywhere: 'Neither this machine nor the catalog has images.',
    copySome: 'Copy some (.img, .img.zst, .qcow2 ...) to {folder}.',
    thenLookAgain: 'Then look again with [r], or go back with [b] and choose a catalog.',
  },
  disk: {
    prompt: 'Disk',
    columns: {
      path: 'Path',
      size: 'Size',
      model: 'Model',
      serial: 'Serial',
      bus: 'Bus',
      holds: 'On it now',
    },
    refused: {
      system: 'holds this system',
      mounted: 'mounted on {points}',
      tooSmall: 'too small: the image needs {size}',
      tooSmallOrCut:
        'too small: its last bytes say that the image needs {size}; cut off? compare its checksum',
      readOnly: 'read-only',
      noMedium: 'no medium in it',
      other: 'not a disk that can be written',
    },
    device: '{type} device',
    empty: 'nothing known',
    partitions: { one: '{count} partition', other: '{count} partitions' },
    firstAndMore: { one: '{first}, {count} more', other: '{first}, {count} more' },
    unknownContent: 'unknown',
    looking: 'looking at the disks ...',
    cannotList: 'the disks cannot be listed: {reason}',
    none: 'No flash-eligible disks detected.',
    plugIn:
      'Plug one in and look again with [r]; "lsblk" in another shell shows what the kernel sees.',
  },
  confirm: {
    promptFlash: 'Flash',
    promptBack: 'Back',
    image: 'Image',
    disk: 'Disk',
    from: 'from {address}',
    checking: 'checking ...',
    rejected: 'Rejected:',
    rootNeeded: 'writing to a disk needs root: run it again as root',
    allLostOn: 'Everything on {disk} will be lost:',
    allLost: 'All of it will be lost:',
    allLostOnAll: {
      one: 'Everything on {count} disk will be lost:',
      other: 'Everything on these {count} disks will be lost:',
    },
    nothingFound: 'no partitions or file systems found',
    withTemplate: 'The first-boot template {name} is written with the image.',
    withoutTemplate: 'The first-boot template {name} is not written.',
    templateForOne: 'No first-boot template: it is only written where one disk is flashed.',
    more: { one: 'and {count} more', other: 'and {count} more' },
  },
  flashing: {
    onto: {
      one: '{image} -> {count} disk',
      other: '{image} -> {count} disks',
    },
    checking: 'checking image and disk ...',
    cancelling: 'cancelling ...',
    preparing: 'preparing the disk ...',
    firstBoot: 'writing the first-boot configuration ...',
    writing: 'writing',
    /** Where only what differs from the disk shall be written. */
    delta: {
      compared: 'writing what differs',
      'mostly-different': 'writing the whole image, as the disk holds something else',
      'no-index': 'writing the whole image, as it has no index',
      untrusted: 'writing the whole image, as the digest of its index is not known',
    },
    readingBack: 'reading back what was written',
    readingBackSamples: 'reading back what was written, samples of its zeros',
    growing: 'growing the last partition and its file system ...',
    partitions: 'the kernel reads the new partitions ...',
    done: 'done',
    waitingFor: '{phase}, waiting for the {part}',
    parts: {
      network: 'network',
      source: 'source',
      decoder: 'decoder',
      disk: 'disk',
    },
    readSoFar: '{amount} of the image read, {time} so far',
    soFar: '{time} so far',
    cancel: 'Ctrl-C cancels; what is half written cannot boot. ? shows help.',
    stopReporting: 'Ctrl-C goes on without waiting. ? shows help.',
  },
  bar: {
    phases: { write: 'write', verify: 'verify', read: 'read' },
    left: '{time} left',
  },
  /** Where lines are not redrawn. */
  events: {
    started: 'Preparing the disk.',
    startedWithSize: 'Preparing the disk, {size} to write.',
    writing: 'Writing the image.',
    writingNote: 'Writing the image ({note}).',
    capturing: 'Writing the image of the disk.',
    delta: {
      compared: 'Writing what differs from the image; the rest stays on the disk.',
      'mostly-different': 'Writing the whole image; the disk holds something else.',
      'no-index': 'Writing the whole image; it has no index to compare the disk with.',
      untrusted: 'Writing the whole image; the digest of its index is not known.',
    },
    readingBack: 'Reading back what was written.',
    growing: 'Growing the last partition and its file system.',
    synced: 'Everything is on the disk.',
    partprobed: 'The kernel has read the new partition table.',
    cloudInit: 'Adding the cloud-init data.',
    cijoe: 'Running the cijoe workflow.',
    done: 'The disk is ready.',
    failed: 'Failed: {reason}',
  },
  outcome: {
    prompt: 'Next',
    question: 'What next?',
    choices: {
      reboot: 'reboot',
      disks: 'back to the disks',
      again: 'another disk, same image',
      quit: 'quit',
    },
    cancelled: 'Cancelled.',
    failed: 'The flash failed: {reason}',
    verified: 'Done. Wrote {size} to {disk} in {time}, verified.',
    warning: 'Warning: {warning}.',
    notVerified: 'Done. Wrote {size} to {disk} in {time}, not verified.',
    failedOn: '{disk}: {reason}',
    allVerified: 'Done and verified: {disks}.',
    allNotVerified: 'Done, not verified: {disks}.',
    kept: '{size} of it was already on the disk.',
    /** Why not only what differs was written. */
    whole: {
      'mostly-different': 'All of it was written: the disk held something else.',
      'no-index': 'All of it was written: the image has no index to compare the disk with.',
      untrusted: "All of it was written: the digest of the image's index is not known.",
    },
    checksumMatches: 'The checksum of the image matches.',
  },
} as const

/** What every screen of the wizard shows, in English: its program, header, keys and help. */
const FRAME = {
  program: {
    terminalNeeded: 'the wizard needs a terminal',
    withoutTerminal: 'Without one: "flasher flash --image IMAGE --target DISK --yes".',
    wrongMac: '--mac {text} is not a MAC address',
    likeMac: 'Write it like 52:54:00:12:34:56.',
    wrongServer: '--server {text} is not an address',
    likeServer: 'Write it like http://10.0.0.1:8080.',
    leftToWizard: 'the server leaves the choice to the wizard',
    terminalNeededToGoOn: 'The wizard, which would continue here, needs a terminal.',
    notRoot: 'Without root, disks can be looked at but not written.',
    notFollowed:
      'The server {server} is not used, and flashes are not reported to it: the MAC address of this machine is unknown (set --mac, or flasher.mac= on the kernel command line).',
    notRestartedFromHere: 'this machine is not restarted from here',
    restartFailed: 'the restart failed: {reason}',
  },
  header: {
    standalone: 'standalone',
    steps: {
      catalog: 'Catalog',
      image: 'Image',
      disk: 'Disk',
      flash: 'Flash',
      capture: 'Capture',
      reboot: 'Reboot',
    },
    step: '{at} of {count}',
    labels: {
      imageRoot: 'image_root:',
      catalog: 'catalog:',
      image: 'image:',
      disk: 'disk:',
    },
    disks: '{count}: {disks}',
    localOnly: 'local only',
  },
  /** What the letters do, on the last line. */
  keys: {
    back: 'back',
    image: 'image',
    disk: 'disk',
    catalog: 'catalog',
    refresh: 'refresh',
    leave: 'leave it as it is',
    flash: 'ERASE AND FLASH',
    withTemplate: 'with template',
    withoutTemplate: 'without template',
    quit: 'quit',
  },
  help: {
    asks: {
      catalog:
        'Choose where the images come from: the default catalog, another one, only the images of this machine, or a disk that an image is made of.',
      source:
        'Type the location of a catalog: a file, an http(s) address, or an oras reference. Enter alone means no catalog.',
      image:
        'Choose the image to write. Images of this machine come first, then those of the catalog. A row that begins with - cannot be chosen; the reason is in brackets.',
      disk: 'Choose the disk to write to. Everything on it will be lost. Tick several to write the image to all of them. A row that begins with - cannot be chosen; the reason is in brackets. Tell equal disks apart by their serial numbers.',
      confirm:
        'Check the image and the disk, and what will be lost. Nothing has been written yet: only y starts the flash.',
      flash:
        'The image is being written, then read back. Nothing is asked. A flash that is cancelled leaves a disk that does not boot.',
      failed:
        'The flash failed; the screen says why, and what is on the disk now. Choose what to do next.',
      done: 'The disk is ready. Choose what to do next.',
    },
    names: {
      arrows: '↑ ↓',
      arrowsPlain: 'Up Down',
      pages: '{arrows} PgUp PgDn',
      numbers: '1, 2, ...',
      space: 'Space',
      several: '1 2',
      filter: '/ and text',
      letter: 'a letter',
      number: 'a number',
      enter: 'Enter',
      interrupt: 'Ctrl-C',
    },
    does: {
      moveInList: 'move the mark; Enter chooses the marked row',
      markByNumber: 'mark the row with that number; Enter chooses it',
      tick: 'tick the marked row, or take its tick away; Enter goes on with all ticked rows',
      filter: 'show only the rows with that text; Esc shows all',
      move: 'move the mark; Enter chooses',
      markNumber: 'mark the row with that number',
      markLetter: 'mark the row with that letter in brackets',
      chooseNumber: 'chooses that row; Enter after each input',
      chooseSeveral: 'chooses several rows, by their numbers',
      chooseText: 'chooses the first row with that text',
      takeText: 'takes what was typed',
      cancel: 'cancels the flash',
      quit: 'quits',
      help: 'shows this help',
    },
    /** Where the last line of the screen is too short. */
    letters: {
      b: 'back to the step before',
      m: 'capture a disk of this machine',
      r: 'look again at files, catalog or disks',
      y: 'erase the disk and flash it, at once',
      t: 'write the first-boot template with the image, or not',
      q: 'quit; nothing more is written',
    },
    more: 'Any key: more help.',
    end: 'Any key: back to the screen.',
  },
} as const

/** The screens on which a disk is captured, in English. */
const CAPTURE = {
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

/** What a machine says that its server drives, in English. */
const DRIVEN = {
  driven: {
    catalog: "the server's plan",
    /** `{address}`: of the machine's page. */
    phone: 'On a phone: {address}',
    wrongServer: '{text} is not the address of a server.',
    wrongMac: '{text} is not a MAC address.',
    looking: 'Looking for the machine server at {addresses}…',
    noServer: 'No machine server answers at {addresses}.',
    tryingAgain: 'The server does not answer ({reason}); trying again…',
    endsWait: 'Ctrl-C ends the wait, and the wizard opens.',
    otherServer: '{from} does not answer; going on with {to}.',
    cannotFollow: 'This machine cannot follow the server: {reason}',
    cannotListDisks: 'The disks of this machine cannot be listed: {reason}',
    disksRefused: 'The server refused the list of disks: {reason}.',
    noPlan: 'The server sent no plan: {reason}.',
    wrongPlan: 'The plan from the server cannot be followed: {reason}.',
    nothingToDo: 'The server has nothing to do for this machine.',
    leaving: 'Leaving: the machine continues with its own disk.',
    readingHardware: {
      one: 'The server has the list of {count} disk; reading the hardware…',
      other: 'The server has the list of {count} disks; reading the hardware…',
    },
    rebooting: 'Rebooting…',
    cannotRestart: 'This machine cannot be restarted ({reason}): restart it by hand.',
    flashing: 'Flashing {image} to {disk}, as the server requested.',
    imageMoved: 'The image was replaced since the plan was made; asking for the plan again…',
    capturing: 'Capturing {disk} into {image}, as the server requested.',
    captureFailed: 'The capture that the server requested failed: {reason}.',
    noFirstBoot: 'The server did not provide the first-boot configuration: {reason}.',
    wrongFirstBoot: 'it cannot be read',
    noTemplate: 'No first-boot template: {reason}.',
    namelessImage: 'image',
    flashCancelled: 'The flash that the server requested was cancelled.',
    flashFailed: 'The flash that the server requested failed: {reason}.',
    /** The other consoles of the machine show this. */
    statusFlash: 'flash of {image} to {disk}',
    statusWizard: 'wizard: {notice}',
  },
  /** A clause of `driven.wrongPlan`, about the plan or its disk. */
  plan: {
    noObject: 'it is not a JSON object',
    noMode: 'it names no mode',
    unknownMode: 'it names the unknown mode {mode}',
    noImage: 'it names no image',
    imageElsewhere: 'its image is not at the address of a server: {image}',
    noDisk: 'it names no disk',
    noName: 'it names no image to be made',
    wrongUpload: 'the place for the captured image has no address, or no token',
    wrongTicket: 'its first-boot configuration has no address on this server, or no token',
    wrongSeen: 'what it says about the disk cannot be read',
    wrongDigest: 'its digest is not a SHA-256: {digest}',
    namelessDisk: 'unnamed',
    noDisks: 'The disk {disk} is not in this machine: it has no disks.',
    diskMissing: 'The disk {disk} is not in this machine: it has {disks}.',
    diskChanged: 'Another disk is at {disk}: {is}. When it was selected, there was {was}.',
    disksAlike: {
      one: '{count} disk of this machine is called {disk}: {paths}.',
      other: '{count} disks of this machine are called {disk}: {paths}.',
    },
  },
  report: {
    bootSet: 'UEFI: {outcome}.',
    bootNotSet: 'UEFI: no one-shot boot of {disk}: {reason}.',
    silent: 'The server does not answer; trying again, for {time} more.',
    tryingAgain: 'Not reported yet ({reason}); trying again, for {time} more.',
    notWaitedFor: 'its answer was not waited for',
    notReported:
      'The disk is flashed, but the server could not be notified ({reason}), so it would flash this machine again. Reboot when the server is back, or boot the disk by hand.',
  },
  viewer: {
    greeting:
      'Another console of this machine carries out what its server requests; it is shown here.',
    ownWizard: 'Press a key for a wizard of your own.',
  },
} as const

/** Every text of the wizard in English, by screen; `{name}` stands for a value. */
const ENGLISH = { ...FRAME, ...FLASH, ...CAPTURE, ...DRIVEN } as const

/** What the table of any language satisfies; that its placeholders are known is checked at each use. */
type FlasherTranslation = Translated<typeof ENGLISH>

export const WIZARD_TEXTS = ENGLISH satisfies FlasherTranslation
