/** What every screen of the wizard shows, in English: its program, header, keys and help. */

export const FRAME = {
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
