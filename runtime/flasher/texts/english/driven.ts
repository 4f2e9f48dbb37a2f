/** What a machine says that its server drives, in English. */

export const DRIVEN = {
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
