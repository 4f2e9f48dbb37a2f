/** What still uses a word of docs/words.md for something else, and type names that are declared twice: may only become less. */

/** Fields of records, events and metrics that are stored or sent, and a folder of live media: they stay. */
export const PROMISED: readonly string[] = ['live', 'offer', 'offers']

export const LEFT: Readonly<Record<string, readonly string[]>> = {
  frame: [
    'FRAME',
    'Frame',
    'MAX_FRAME_LINE',
    'frame',
    'frames',
    'renderFrameLine',
    'requireFramesName',
    'zeroFrames',
  ],
  look: ['LOOK_MS', 'look', 'lookLater', 'lookNow', 'looks', 'thenLookAgain'],
  place: [
    'Place',
    'ZEROES_IN_PLACE',
    'claimPlace',
    'listPlace',
    'listPlaces',
    'place',
    'placeNames',
    'placeOf',
    'places',
    'readPlace',
  ],
  offer: [
    'offerBoot',
    'offerDisk',
    'offerFirstBoot',
    'offerFlash',
    'offerImages',
    'offerLocal',
    'offerPlan',
    'offerRemote',
    'offerScript',
    'offerSource',
    'offerUnlock',
  ],
}

export const LEFT_TYPES: readonly string[] = ['Flash', 'Frame', 'Page', 'Place']
