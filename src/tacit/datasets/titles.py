"""Invented film titles whose words hint at a genre. No title is meant to be that of a real film."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Genre(NamedTuple):
    """The words of one genre: how things are, what things there are, and where they happen."""

    name: str
    adjectives: tuple[str, ...]
    nouns: tuple[str, ...]
    places: tuple[str, ...]


def _genre(name: str, adjectives: str, nouns: str, places: str) -> Genre:
    """Build a genre from comma-separated words."""
    return Genre(name, *(tuple(words.split(", ")) for words in (adjectives, nouns, places)))


GENRES = (
    _genre(
        "space",
        "Weightless, Orbital, Starbound, Light-Year, Cosmic, Lunar, Faster-Than-Light, Meteoric",
        "Astronaut, Starship, Asteroid, Space Station, Robot, Telescope, Comet, Airlock",
        "Kepler Nine, Port Andromeda, the Ninth Moon, Orbit Seven, New Saturn, Quasar Bay",
    ),
    _genre(
        "crime",
        "Crooked, Double-Crossed, Rain-Soaked, Framed, Forged, Wiretapped, Hard-Boiled, Bribed",
        "Detective, Alibi, Safecracker, Informant, Heist, Getaway Car, Pickpocket, Verdict",
        "Harker Street, Pier Forty, Vice Alley, Lower Marlowe, Ransom Heights, Dockside",
    ),
    _genre(
        "romance",
        "Lovelorn, Tender, Heartsick, Kissable, Smitten, Blushing, Twice-Wed, Swooning",
        "Sweetheart, Love Letter, Honeymoon, Bridegroom, Bouquet, Matchmaker, Waltz, Proposal",
        "Rosewater Lane, Valentine Quay, Villa Amoretta, Lavender Hill Road, Café Toujours",
    ),
    _genre(
        "horror",
        "Haunted, Screaming, Cursed, Blood-Red, Undead, Whispering, Possessed, Moonless",
        "Crypt, Ghoul, Gravedigger, Séance, Scarecrow, Werewolf, Coffin, Poltergeist",
        "Dreadmoor, Hollowgrave, Blackwick Asylum, Raven Fen, Gallows Wood, Mournful Hall",
    ),
    _genre(
        "comedy",
        "Clumsy, Ridiculous, Absent-Minded, Hiccuping, Overdressed, Ticklish, Bungling, Giggling",
        "Dentist, Brother-in-Law, Substitute Teacher, Landlady, Clown, Goose, Wig, Fruitcake",
        "Lower Piddleton, Bananaville, Custard-on-Sea, Mirth Hill, Noodle County, Wobbleford",
    ),
    _genre(
        "western",
        "Dusty, Sunburnt, Quick-Drawing, Saddle-Sore, Outlawed, Lonesome, Tumbling, Gold-Fevered",
        "Sheriff, Gunslinger, Stagecoach, Cattle Drive, Mustang, Deputy, Saloon, Horseshoe",
        "Coyote Gulch, Broken Spur, Rattlesnake Mesa, Dry Creek Junction, Fort Bramble",
    ),
    _genre(
        "fantasy",
        "Enchanted, Spellbound, Dragon-Hearted, Elven, Thrice-Crowned, Runic, Winged, Bewitched",
        "Wizard, Dragon, Amulet, Unicorn, Goblin, Spellbook, Griffin, Broadsword",
        "Eldermere, the Silver Citadel, Thornhollow, Wyrmgate, the Elfwood, Castle Aurelune",
    ),
    _genre(
        "nature",
        "Migrating, Wild, Nesting, Wide-Winged, Deep-Sea, Arctic, Ever-Flowering, Tidal",
        "Penguin, Glacier, Rainforest, Humpback, Coral Reef, Snow Leopard, Savannah, Otter",
        "the Amber Delta, Cape Cormorant, the Frozen Coast, the Mangrove Isles, Lake Heron",
    ),
)

_SHAPES = (
    "The {adjective} {noun}",
    "The {noun} of {place}",
    "The {adjective} {noun} of {place}",
    "My {adjective} {noun}",
    "Goodbye, {adjective} {noun}",
)


def invent_titles(
    main: npt.NDArray[np.int64], second: npt.NDArray[np.int64], rng: np.random.Generator
) -> list[str]:
    """Invent one unique title per item: noun and place of its main genre, adjective of its second.

    Args:
        main: position in GENRES of every item's strongest genre.
        second: position of its second genre.
        rng: where the choice of words comes from.
    """
    used: dict[str, int] = {}
    dice = rng.random((len(main), 4))
    return [
        _numbered(_title(GENRES[a], GENRES[b], throw), used)
        for a, b, throw in zip(main, second, dice, strict=True)
    ]


def _title(main: Genre, second: Genre, throw: npt.NDArray[np.float64]) -> str:
    """Put one title together from four numbers in [0, 1)."""
    banks = (_SHAPES, second.adjectives, main.nouns, main.places)
    shape, adjective, noun, place = (
        bank[int(number * len(bank))] for bank, number in zip(banks, throw, strict=True)
    )
    return shape.format(adjective=adjective, noun=noun, place=place)


def _numbered(title: str, used: dict[str, int]) -> str:
    """Return the title itself the first time, and a sequel of it after that."""
    used[title] = used.get(title, 0) + 1
    return title if used[title] == 1 else f"{title}, Part {used[title]}"
