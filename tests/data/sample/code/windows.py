def windows_lines():
    """This file has the line ends of Windows."""
    return "café"


print(windows_lines())
